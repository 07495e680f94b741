import { equalJson, isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import {
  type Answer,
  conditionOn,
  createError,
  readJson,
  refuse,
  resolveReference,
  throwAfterWrite,
} from './answers.ts'
import type { AnyPath, AnyTraits, FileNames, PathTypes, Trait } from './definition-paths.ts'
import { type Call, readDocument, readWritten } from './read.ts'
import { formatJson, isBlob, isForm, toBlob, typeOf } from './request-content.ts'
import type { Failure, Operation, ResourceDocument, ResourceHandle, Success } from './results.ts'
import { type RequestOptions, readRetryAfter } from './transport.ts'

/** The state that a write is for: the one that was read, any that there is, or none. */
export type Match = ResourceHandle | 'any' | 'absent'

/** 412: the state is not the one that was read. */
export const CHANGING = [401, 403, 404, 409, 410, 412, 413, 422] as const

export type ReplaceResult<Types extends PathTypes, Path extends string> =
  | Success<200 | 201 | 204, { readonly document: ResourceDocument<Types['output'], Path> }>
  | Failure<(typeof CHANGING)[number]>

export async function replaceDocument(
  call: Call,
  match: Match,
  value: unknown,
): Promise<ReplaceResult<PathTypes, string>> {
  const text = formatJson(value)
  const headers = { 'Content-Type': 'application/json', ...conditionOn(match) }
  // The condition lets it take effect once; with If-Match: * every repetition leads to the same state.
  const answer = await call.send(call, { method: 'PUT', headers, content: { body: text } })
  const { status } = answer
  if (status === 200 || status === 201 || status === 204) {
    return { ok: true, status, document: await readWritten(call, answer) }
  }
  if (status === 412 && answer.isRepeated) {
    // The attempt whose answer was lost may be what changed the state.
    const current = await readDocument(call).catch(throwAfterWrite)
    if (current.ok) {
      const { document } = current
      // Of a handle without text it is not known what was there: nothing but an id may have been added.
      const before = (match as Partial<ResourceDocument>).text ?? document.text
      const base = typeof match === 'string' ? undefined : (JSON.parse(before) as JsonValue)
      if (isEffectOf(JSON.parse(text), document.value, base)) return { ok: true, status: 204, document }
    }
  }
  return refuse(answer, CHANGING)
}

/**
 * Whether a state is what was sent, apart from properties that the server adds: those that are new, or have the value
 * again that they had, such as a default of the schema. The latter count only beside a change that is there.
 */
function isEffectOf(sent: JsonValue, current: JsonValue, base: JsonValue | undefined): boolean {
  if (!isJsonObject(sent) || !isJsonObject(current)) return equalJson(sent, current)
  const before = isJsonObject(base) ? base : {}
  const isSame = (a: JsonObject, b: JsonObject, name: string): boolean =>
    equalJson(readMember(a, name), readMember(b, name))
  const hasChange = Object.keys(sent).some((name) => !isSame(sent, before, name))
  return Object.keys({ ...sent, ...current }).every((name) => {
    if (Object.hasOwn(sent, name)) return isSame(sent, current, name)
    return name === 'id' || !Object.hasOwn(before, name) || (hasChange && isSame(current, before, name))
  })
}

/** The monitor of a removal that is done later. */
export interface RemovalMonitor {
  readonly id: string
  readonly kind: 'removal'
  /** The path of the resource that is removed. */
  readonly target: string
  readonly state: 'pending' | 'done' | 'failed'
  /** When the removal was accepted, as RFC 3339 has it. */
  readonly accepted: string
  /** When it ended. */
  readonly ended?: string
  /** What was removed, once it is done. */
  readonly result?: { readonly deleted: true; readonly id: string | number }
  /** Why it failed. */
  readonly problem?: JsonValue
  /** Who asked for it; left out where the request had no principal. */
  readonly principal?: { readonly scheme: string; readonly id: string }
}

type Removed = Success<200 | 204, { readonly content: JsonValue | undefined }>
/** 204: the answer was lost, and the removal is done by now. */
type Removing =
  | Success<202, { readonly operation: Operation<RemovalMonitor> }>
  | Success<204, { readonly content: undefined }>

const REMOVING = [401, 403, 404, 409, 410, 412] as const

export type RemoveResult<Types extends PathTypes> =
  | (Types['traits'] extends AnyTraits
      ? Removed | Removing
      : Trait<Types['traits'], 'deletion', 'hard'> extends 'queued'
        ? Removing
        : Removed)
  | Failure<(typeof REMOVING)[number]>

export async function removeResource(call: Call, match: Match): Promise<RemoveResult<AnyPath>> {
  const answer = await call.send(call, { method: 'DELETE', headers: conditionOn(match) })
  call.cache.forget(call.url)
  const { status } = answer
  if (status === 200 || status === 204) return { ok: true, status, content: readJson(answer) }
  if (status === 202) {
    const monitor = resolveReference(answer, answer.headers.get('location') ?? call.url)
    return { ok: true, status, operation: describeOperation(answer, monitor) }
  }
  if (answer.isRepeated && (await isGone(call, answer).catch(throwAfterWrite))) {
    return { ok: true, status: 204, content: undefined }
  }
  return refuse(answer, REMOVING)
}

/** Whether a removal whose answer was lost has had its effect. */
async function isGone(call: Call, { status }: Answer): Promise<boolean> {
  const isAbsent = (status: number): boolean => [404, 410].includes(status)
  return isAbsent(status) || (status === 412 && isAbsent((await call.send(call, { method: 'HEAD' })).status))
}

/** Options of `create`. */
export interface CreateOptions extends RequestOptions {
  /** The media type of content that is not JSON. Default: that of the Blob. */
  readonly contentType?: string
  /** The Idempotency-Key. Default: a random one. */
  readonly key?: string
  /**
   * Whether to send the request again under the same key when no response comes. Only a server that keeps keys creates
   * once; any other creates a second item. Default: true for the collections that `keyed` names.
   */
  readonly repeat?: boolean
}

/** What a creation may send. */
export type CreateContent<Types extends PathTypes> =
  | (Types['content'] extends 'raw' ? never : Types['input'])
  | (Types['content'] extends 'json' ? never : Blob | Uint8Array)
  | (Types['traits'] extends AnyTraits | { readonly create: 'accepted' }
      ? FormData
      : [FileNames<Types['traits']>] extends [never]
        ? never
        : FormData)

type Created<Types extends PathTypes, Item extends string> = Success<
  201,
  Types['traits'] extends AnyTraits
    ? { readonly url: string; readonly document?: ResourceDocument<Types['output'], Item> }
    : Types['content'] extends 'json'
      ? { readonly url: string; readonly document: ResourceDocument<Types['output'], Item> }
      : { readonly url: string }
>
type Accepted<Types extends PathTypes> = Success<
  202,
  { readonly url: string; readonly operation: Operation<Types['output']> }
>

const CREATING = [401, 403, 404, 409, 413, 422] as const

export type CreateResult<Types extends PathTypes, Item extends string> =
  | (Types['traits'] extends AnyTraits
      ? Created<Types, Item> | Accepted<Types>
      : Trait<Types['traits'], 'create', 'created'> extends 'accepted'
        ? Accepted<Types>
        : Created<Types, Item>)
  | Failure<(typeof CREATING)[number]>

export async function createItem(
  call: Call<CreateOptions>,
  path: string,
  content: unknown,
): Promise<CreateResult<AnyPath, string>> {
  const {
    // Browsers have `randomUUID` on pages of https and of the same machine only.
    key = crypto.getRandomValues(new Uint8Array(16)).join(''),
    repeat = call.keyed.includes(path),
    contentType,
  } = call.options ?? {}
  const form = isForm(content) ? content : undefined
  const blob = isBlob(content) || ArrayBuffer.isView(content) ? toBlob(content) : undefined
  const type = form ? undefined : blob ? (contentType ?? typeOf(blob)) : 'application/json'
  const answer = await call.send(call, {
    method: 'POST',
    headers: { 'Idempotency-Key': key, ...(type && { 'Content-Type': type }) },
    content: { body: form ?? blob ?? formatJson(content) },
    isRepeatable: repeat,
  })
  const { status } = answer
  if (status !== 201 && status !== 202) return refuse(answer, CREATING)
  const location = answer.headers.get('location')
  if (!location) throw createError(answer, 'The response has no Location.')
  const created = resolveReference(answer, location)
  if (status === 202) return { ok: true, status, url: created, operation: describeOperation(answer, created) }
  if (blob) return { ok: true, status, url: created }
  return { ok: true, status, url: created, document: await readWritten({ ...call, url: created }, answer) }
}

function describeOperation<Value>(answer: Answer, url: string): Operation<Value> {
  return { url, retryAfter: readRetryAfter(answer) }
}
