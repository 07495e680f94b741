import type { IncomingMessage } from 'node:http'
import { requireFewMembers } from '../body-types/json.ts'
import { type BodyLimits, readLimits, tooLarge } from '../body-types/limits.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { ErrorHook } from '../core/failures.ts'
import { judgeConditions, readConditions, requireCondition } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import type { JsonValue } from '../core/json.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { createHandler } from '../core/node-handler.ts'
import {
  CHECKED_LATER,
  CLOCK,
  FUNCTION,
  oneOf,
  PATCH_FORMATS,
  PRECONDITIONS,
  required,
  type ValueRule,
  withDefault,
} from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { leadsBack, readTarget, sentTarget } from '../core/place.ts'
import { contentReply, emptyReply, encodeText, type Reply } from '../core/reply.ts'
import type { HostRequest, RequestView } from '../core/request-view.ts'
import { pause } from '../core/time.ts'
import { createTurns, MAX_ATTEMPTS, PATIENT_ATTEMPTS } from '../core/turns.ts'
import {
  createDefaultFormats,
  formatAcceptPatch,
  type ParsedPatch,
  type PatchFormat,
} from '../patch-formats/patch-format.ts'
import { formatCacheControl } from '../protocol/cache-control.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { parsePrefer } from '../protocol/prefer.ts'
import { toOriginForm } from '../protocol/request-line.ts'
import { readPatch, requireDocument, selectFormat } from './patch-content.ts'
import { formatValidators, type KnownValidators, resolveValidators } from './validators.ts'

/** What is to be patched. Further members, such as a version, reach `write` with it. */
export interface PatchTarget extends KnownValidators {
  /** The current document. It is not changed. */
  readonly document: JsonValue
}

/** A patch that has been applied and is to be stored. */
export interface PatchedTarget<Target extends PatchTarget = PatchTarget> {
  /** What `read` gave. */
  readonly current: Target
  /** The patched document. It shares what the patch left alone with the current one: change neither. */
  readonly document: JsonValue
  /** The patched document as JSON text. */
  readonly text: string
}

/** What `write` has stored: the validators of the new state, which are sent with the response. */
export interface PatchResult extends KnownValidators {
  /** The stored document. Default: the patched one. */
  readonly document?: JsonValue
}

/** Options of `patch`. It needs `read` and `write`. */
export interface PatchOptions<Target extends PatchTarget = PatchTarget> {
  /** Gives the current document and its validators; `undefined` when there is none, which is 404. */
  readonly read: (request: RequestView) => MaybePromise<Target | undefined>
  /**
   * Stores the patched document, if the state is still the one that was read; otherwise `'conflict'`, and the patch is
   * judged and applied anew. Without that comparison one of two patches at a time is lost.
   */
  readonly write: (
    patched: PatchedTarget<Target>,
    request: RequestView,
  ) => MaybePromise<PatchResult | 'conflict' | undefined | void>
  /**
   * Patch formats. One that is named has limits of its own: where `limits.depth` is not 100, give it the same `maxDepth`, or a
   * patch nests a document so deep that it cannot be sent whole. Default: JSON Patch and JSON Merge Patch, by the `limits`.
   */
  readonly patchFormats?: readonly PatchFormat[]
  /** `bodySize`, `depth` and `jsonMembers` limit the patch and the patched document; see {@link BodyLimits}. */
  readonly limits?: Partial<BodyLimits>
  /**
   * `'required'`: a patch needs If-Match, If-None-Match or If-Unmodified-Since; 428 otherwise (RFC 6585 §3). Default
   * `'optional'`.
   */
  readonly preconditions?: 'optional' | 'required'
  /**
   * The response where the request has no `Prefer: return` (RFC 7240): 200 with the patched document, or 204.
   * A patch that changes nothing is 204. Default `'representation'`.
   */
  readonly reply?: 'representation' | 'minimal'
  /** Content-Type of the document. Default `application/json`. */
  readonly contentType?: string
  /** Called with unexpected errors where there is no `next`. Default: `console.error`. */
  readonly onError?: ErrorHook
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** Parameters are allowed, ranges are not. */
const MEDIA_TYPE: ValueRule = {
  accepts: (value) => typeof value === 'string' && !value.includes('*') && parseMediaType(value) !== undefined,
  text: "a media type, such as 'application/json'",
}

const OPTIONS = {
  read: required(FUNCTION),
  write: required(FUNCTION),
  patchFormats: PATCH_FORMATS,
  limits: CHECKED_LATER,
  preconditions: withDefault(PRECONDITIONS, 'optional'),
  reply: withDefault(oneOf('representation', 'minimal'), 'representation'),
  contentType: withDefault(MEDIA_TYPE, 'application/json'),
  onError: FUNCTION,
  now: CLOCK,
} satisfies OptionTable<PatchOptions>

/**
 * Standalone middleware that applies patch documents (RFC 5789) to documents that the user keeps: all of a patch or
 * nothing, under the conditions of the request (RFC 9110 §13). Answers 200 or 204, and 400, 404, 409, 412, 413, 415
 * and 428; throw an `HttpError` from `read` or `write` for other statuses. Other methods go on to `next`.
 * @returns a handler for `http.createServer`, Express and Connect, and for Koa through `koaMiddleware`
 * @throws TypeError for an option that does not exist or makes no sense
 * @example
 * app.use('/users', patch({
 *   read: ({ path }) => users.find(path.slice(1)), // { document, version, entityTag }
 *   write: async ({ current, text }) =>
 *     (await users.update(text, { onlyIfVersion: current.version })) ?? 'conflict',
 * }))
 */
export function patch<Target extends PatchTarget>(options: PatchOptions<Target>): Handler {
  if (typeof options === 'function')
    throw new TypeError('patch takes its functions as options: patch({ read, write }).')
  const given = resolveOptions('patch', options, OPTIONS)
  const { read, write, onError, preconditions, now, contentType, reply: defaultReply } = given
  const limits = readLimits('patch', given.limits)
  const formats = given.patchFormats ?? createDefaultFormats(limits)
  const acceptPatch = ['Accept-Patch', formatAcceptPatch(formats)]

  /** The current state, if the request may be performed on it. */
  function load(exchange: Exchange): MaybePromise<Target> {
    return andThen(read(exchange), (current) => {
      if (current === undefined) throw new HttpError(404, 'ERR_NOT_FOUND')
      const time = now()
      const validators = resolveValidators(current, time)
      requireDocument(current.document, '"read" of patch gives { document, ... }, or undefined where there is none')
      const conditions = readConditions(exchange)
      if (preconditions === 'required') requireCondition(conditions, validators, time)
      judgeConditions(exchange, conditions, validators, time)
      return current
    })
  }

  const turns = createTurns()

  /**
   * Applies a patch. One path may stand for many documents (`/me`), so patches take turns only once two have met: those
   * that meet at a path, and those that come to it while they are under way.
   */
  function perform(exchange: Exchange, parsed: ParsedPatch, current: Target): MaybePromise<Reply> {
    const key = targetOf(exchange.req)
    const inTurn = (attempts: number): MaybePromise<Reply> =>
      turns.take(key, () => applyAnew(exchange, parsed, attempts), 'go-on', exchange)
    if (turns.isTaken(key)) return inTurn(1)
    return andThen(attempt(exchange, parsed, current), (reply) => (reply === 'conflict' ? inTurn(2) : reply))
  }

  /** Applies it to the state that there is now, until no other change comes between. */
  async function applyAnew(exchange: Exchange, parsed: ParsedPatch, attempts: number): Promise<Reply> {
    for (; ; attempts++) {
      const reply = await attempt(exchange, parsed, await load(exchange))
      if (reply !== 'conflict') return reply
      if (attempts === MAX_ATTEMPTS) {
        throw new HttpError(409, 'ERR_CONFLICT', { detail: 'Other requests keep changing the resource.' })
      }
      if (attempts >= PATIENT_ATTEMPTS) await pause(attempts)
    }
  }

  function attempt(exchange: Exchange, parsed: ParsedPatch, current: Target): MaybePromise<Reply | 'conflict'> {
    const document = atOnce(parsed.apply(current.document))
    if (document === current.document) return createReply(exchange, current, 'minimal')
    const text = JSON.stringify(document)
    if (Buffer.byteLength(text) > limits.bodySize) throw tooLarge(limits.bodySize)
    requireFewMembers(text, limits)
    return andThen(write({ current, document, text }, exchange), (result) => {
      if (result === 'conflict') return result
      // `null`, as of a query that found no row, must not count as stored.
      const known: PatchResult = result === undefined ? {} : result
      if (known?.document !== undefined) requireDocument(known.document, '"write" of patch may give { document, ... }')
      return createReply(exchange, known, defaultReply, known?.document === undefined ? text : undefined)
    })
  }

  function createReply(
    exchange: Exchange,
    known: PatchResult,
    usual: 'representation' | 'minimal',
    text?: string,
  ): Reply {
    const prefer = exchange.field('prefer')
    const preferred = prefer === undefined ? undefined : parsePrefer(prefer).return
    const time = now()
    const fields = formatValidators(resolveValidators(known, time), time)
    fields.push('Cache-Control', formatCacheControl(undefined, exchange.sharing))
    if (preferred !== undefined) fields.push('Preference-Applied', `return=${preferred}`)
    if ((preferred ?? usual) === 'minimal') return emptyReply(204, fields)
    fields.push('Content-Type', contentType)
    // Says that the content is the document itself, not a report on what was done (RFC 9110 §6.4.2). A path that is read
    // in several ways, such as "//a", may be no path as a reference.
    if (exchange.readings === undefined && leadsBack(exchange.place))
      fields.push('Content-Location', targetOf(exchange.req))
    return contentReply(200, encodeText(text ?? JSON.stringify(known.document)), fields)
  }

  return createHandler({
    methods: ['PATCH'],
    run(exchange) {
      const { method } = exchange
      if (method !== 'PATCH') return passOn(exchange, acceptPatch)
      readTarget(exchange)
      const format = selectFormat(exchange, formats, limits)
      return andThen(load(exchange), (current) =>
        andThen(readPatch(exchange, limits), (document) => {
          const parsed = atOnce(format.parse(document))
          return perform(exchange, parsed, current)
        }),
      )
    },
    onError,
    forwardErrors: true,
  })
}

/** OPTIONS tells the formats (RFC 5789 §3.1). Other methods go on to the host, where there is one. */
function passOn({ method, res, canPass }: Exchange, acceptPatch: readonly string[]): Reply | undefined {
  if (method === 'OPTIONS') {
    if (!canPass) return emptyReply(204, ['Allow', 'OPTIONS, PATCH', ...acceptPatch])
    res.setHeader(acceptPatch[0]!, acceptPatch[1]!)
  }
  if (canPass) return undefined
  throw new HttpError(405, 'ERR_METHOD_NOT_ALLOWED', { headers: { Allow: 'OPTIONS, PATCH' } })
}

/** The target as the client sent it, without scheme and authority: those are the client's word. */
function targetOf(req: IncomingMessage & HostRequest): string {
  return toOriginForm(sentTarget(req))
}
