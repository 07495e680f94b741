import type { ServerResponse } from 'node:http'
import type { Exchange } from '../core/exchange.ts'
import { judgeConditions, readConditions, requireCondition } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { createHandler } from '../core/node-handler.ts'
import { CLOCK, describeValue, PRECONDITIONS, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { askEachReading, readTarget } from '../core/place.ts'
import type { Reply } from '../core/reply.ts'
import type { RequestView } from '../core/request-view.ts'
import { removeFields } from '../core/write-head.ts'
import { formatCacheControl } from '../protocol/cache-control.ts'
import { isSafeMethod } from '../protocol/request-line.ts'
import {
  formatValidators,
  type KnownState,
  readCacheControl,
  rememberValidators,
  resolveValidators,
} from './validators.ts'

export type { KnownState, KnownValidators } from './validators.ts'

/** Options of `conditional`. */
export interface ConditionalOptions {
  /**
   * `'required'`: changes of what exists need If-Match, If-None-Match or If-Unmodified-Since; 428 otherwise (RFC 6585
   * §3). Default `'optional'`.
   */
  readonly preconditions?: 'optional' | 'required'
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const OPTIONS = {
  preconditions: withDefault(PRECONDITIONS, 'optional'),
  now: CLOCK,
} satisfies OptionTable<ConditionalOptions>

/**
 * Standalone middleware that evaluates the preconditions of a request before a route does its work (RFC 9110 §13):
 * 304 and 412 are answered here, everything else goes on to `next`, GET and HEAD with the ETag, Last-Modified and
 * Cache-Control that `state` gives set on the response; an error of the route has none of them. What else has to be on a
 * 304 too, such as Vary, is set before this middleware.
 *
 * A write has to compare versions itself when it commits: another request may change the resource between this check and the write.
 * @param state gives the validators of the current representation; `undefined` when there is none, whereupon reads go
 *   on, so that the route can answer 404
 * @returns a handler for `http.createServer`, Express and Connect, and for Koa through `koaMiddleware`; it rejects
 *   with 400 an If-Match that is not a list of tags and, where `preconditions` is `'required'`, with 428 a change
 *   without a condition
 * @throws TypeError for an option that does not exist
 * @example
 * // Express; as Koa middleware: router.get('/report', koaMiddleware(conditional(...)), sendReport)
 * app.get('/report', conditional(async () => ({ entityTag: `"${await revision()}"` })), sendReport)
 * app.put('/notes/:id', conditional(({ params }) => findNote(params.id), { preconditions: 'required' }), saveNote)
 */
export function conditional(
  state: (request: RequestView) => MaybePromise<KnownState | undefined>,
  options?: ConditionalOptions,
): Handler {
  if (typeof state !== 'function') {
    throw new TypeError(
      `conditional takes a function that gives the validators, such as () => ({ entityTag }), not ${describeValue(state)}.`,
    )
  }
  const { preconditions, now } = resolveOptions('conditional', options, OPTIONS)
  return createHandler({
    role: 'guard',
    run(exchange) {
      readTarget(exchange)
      // Conditions apply to neither of these (RFC 9110 §13.2.1), so the state need not be looked up.
      if (exchange.method === 'OPTIONS' || exchange.method === 'TRACE') return undefined
      const known = askEachReading(
        exchange,
        () => state(exchange),
        (known) => known !== undefined,
      )
      return andThen(known, (known) => {
        const time = now()
        if (known !== undefined) return checkState(exchange, known, preconditions, time)
        // Only PUT may find nothing and go on under conditions; for others the route's 404 comes first (§13.2.1).
        if (exchange.method === 'PUT') judgeConditions(exchange, readConditions(exchange), undefined, time)
        return undefined
      })
    },
    forwardErrors: true,
  })
}

/** The other methods of the registry that are safe (RFC 9110 §16.1.1): they change nothing that a condition could protect. */
const SAFE_WEBDAV_METHODS: readonly string[] = ['PROPFIND', 'REPORT', 'SEARCH']

function checkState(
  exchange: Exchange,
  known: KnownState,
  preconditions: 'optional' | 'required',
  now: number,
): Reply | undefined {
  const { method, res } = exchange
  const current = resolveValidators(known, now)
  const isRead = method === 'GET' || method === 'HEAD'
  const conditions = readConditions(exchange)
  const isChange = !isSafeMethod(method) && !SAFE_WEBDAV_METHODS.includes(method)
  if (preconditions === 'required' && isChange) requireCondition(conditions, current, now)
  const outcome = judgeConditions(exchange, conditions, current, now)
  if (!isRead) return undefined
  rememberValidators(exchange, current)
  const fields = formatValidators(current, now)
  const caching = formatCaching(exchange, known)
  // A 304 repeats what tells the states apart, and nothing that describes content (§15.4.5).
  if (outcome === 'not-modified') return { status: 304, headers: [...fields.slice(0, 2), ...caching] }
  // A default that a guard before has set gives way.
  const usual = exchange.usualCacheControl
  const givesWay = caching.length > 0 && usual !== undefined && res.getHeader('cache-control') === usual
  if (givesWay) res.removeHeader('cache-control')
  fields.push(...caching)
  // What the host has set already is its own decision.
  const added = fields.filter((_, i) => !res.hasHeader(fields[i - (i % 2)]!))
  for (let i = 0; i < added.length; i += 2) res.setHeader(added[i]!, added[i + 1]!)
  if (added.length > 0) keepOffErrors(res, added, givesWay ? usual : undefined)
  // Decided. Express asks again when it sends, by looser rules, and would turn some of our 200 into 304. Without a tag of the
  // state, only who makes one of the content, as Express does, can tell whether the client has it.
  if (current.entityTags.length > 0) delete exchange.headers['if-none-match']
  delete exchange.headers['if-modified-since']
  return undefined
}

/**
 * Takes off an error of the route what describes the representation: caches would keep the error for as long as that.
 * @param usual the Cache-Control that gave way
 */
function keepOffErrors(res: ServerResponse, fields: readonly string[], usual: string | undefined): void {
  const writeHead = res.writeHead as (status: number, ...rest: unknown[]) => ServerResponse
  res.writeHead = (status: number, ...rest: unknown[]) => {
    if (status >= 400 && !res.headersSent) {
      removeFields(res, fields)
      if (usual !== undefined && !res.hasHeader('cache-control')) res.setHeader('Cache-Control', usual)
    }
    return writeHead.call(res, status, ...rest)
  }
}

function formatCaching({ sharing }: Exchange, known: KnownState): string[] {
  const cacheControl = readCacheControl(known)
  return cacheControl === undefined ? [] : ['Cache-Control', formatCacheControl(cacheControl, sharing)]
}
