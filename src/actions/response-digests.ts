import type { MaybePromise } from '../core/maybe-promise.ts'
import { readProperty } from '../core/options.ts'
import type { Reply } from '../core/reply.ts'
import { addDigests, type DigestWhole, digestAtHand, digestKept } from '../core/reply-digests.ts'
import { isLargeBody, type StoredResource } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Adds the digests that a request wants to its answer. @see addDigests */
export function addWantedDigests(exchange: ResourceExchange, reply: Reply): MaybePromise<Reply> {
  return addDigests(exchange, reply, findWhole(exchange))
}

/** The representation that a GET or HEAD selects; `undefined` where the content of the answer is all of it. */
function findWhole({ current, rendered, method, page }: ResourceExchange): DigestWhole | undefined {
  if ((method !== 'GET' && method !== 'HEAD') || page !== undefined) return undefined
  if (rendered !== undefined) {
    const content = typeof rendered === 'string' ? Buffer.from(rendered) : rendered
    return (wanted) => digestAtHand(wanted, content, content)
  }
  return current === undefined ? undefined : (wanted) => digestStored(wanted, current)
}

function digestStored(wanted: string, resource: StoredResource): string | undefined {
  const { body } = resource
  if (isLargeBody(body)) return digestKept(wanted, readProperty(resource, 'sha256'))
  return digestAtHand(wanted, body, resource)
}
