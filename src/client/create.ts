import { type Answer, createError, resolveReference } from './answer.ts'
import type { AnyTraits, FileNames, PathTypes, Trait } from './definition-paths.ts'
import { type ClientContext, type RequestOptions, readWritten } from './read.ts'
import { CREATING, type Failure, type Operation, type ResourceDocument, refuse, type Success } from './results.ts'
import { readRetryAfter } from './retry.ts'

export interface CreateOptions extends RequestOptions {
  /** The media type of content that is not JSON. Default: that of the Blob. */
  readonly contentType?: string
  /** The Idempotency-Key. Default: a random one. */
  readonly key?: string
  /**
   * Whether to send the request again under the same key when no answer comes. Only a server that keeps keys creates
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

export type CreateResult<Types extends PathTypes, Item extends string> =
  | (Types['traits'] extends AnyTraits
      ? Created<Types, Item> | Accepted<Types>
      : Trait<Types['traits'], 'create', 'created'> extends 'accepted'
        ? Accepted<Types>
        : Created<Types, Item>)
  | Failure<(typeof CREATING)[number]>

type Outcome =
  | Success<201, { readonly url: string; readonly document?: ResourceDocument }>
  | Success<202, { readonly url: string; readonly operation: Operation }>
  | Failure<(typeof CREATING)[number]>

export async function createItem(
  context: ClientContext,
  url: string,
  path: string,
  content: unknown,
  options: CreateOptions | undefined,
): Promise<Outcome> {
  const { key = crypto.randomUUID(), repeat = context.keyed.includes(path), contentType } = options ?? {}
  const isForm = content instanceof FormData
  const blob = content instanceof Blob || content instanceof Uint8Array ? toBlob(content) : undefined
  const type = isForm ? undefined : blob ? (contentType ?? typeOf(blob)) : 'application/json'
  const answer = await context.send({
    method: 'POST',
    url,
    headers: { 'Idempotency-Key': key, ...(type === undefined ? {} : { 'Content-Type': type }) },
    content: { body: isForm ? content : (blob ?? JSON.stringify(content)) },
    options,
    isRepeatable: repeat,
  })
  const { status } = answer
  if (status !== 201 && status !== 202) return refuse(answer, CREATING)
  const location = answer.headers.get('location')
  if (location === null) throw createError(answer, 'The response has no Location.')
  const created = resolveReference(answer, location)
  if (status === 202) return { ok: true, status, url: created, operation: describeOperation(answer, created) }
  if (blob) return { ok: true, status, url: created }
  return { ok: true, status, url: created, document: await readWritten(context, answer, created, options) }
}

export function describeOperation<Value>(answer: Answer, url: string): Operation<Value> {
  return { url, retryAfter: readRetryAfter(answer) }
}

export function toBlob(content: Blob | Uint8Array | string): Blob {
  return content instanceof Blob ? content : new Blob([content as string])
}

export function typeOf(blob: Blob): string {
  return blob.type || 'application/octet-stream'
}
