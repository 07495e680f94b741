import { tooLarge } from '../body-types/read-body.ts'
import type { BodyLimits } from '../body-types/types.ts'
import type { ResourceStore, StagedBody } from '../stores/types.ts'

/** Content up to this size is kept as one value; more is staged in the store. */
const SMALL = 64 * 1024

/** Takes in a stream of unknown length: a small one as a value, a large one by staging it. */
export async function readSmall(
  source: AsyncIterable<Uint8Array>,
  limits: BodyLimits,
  store: ResourceStore,
): Promise<{ readonly body: Uint8Array | StagedBody; readonly size: number }> {
  const iterator = source[Symbol.asyncIterator]()
  const head: Uint8Array[] = []
  let size = 0
  const most = store.stage === undefined ? limits.parsedSize : SMALL
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    head.push(next.value)
    size += next.value.length
    if (size <= most) continue
    if (store.stage === undefined) throw tooLarge(limits.parsedSize)
    const body = await store.stage(rejoin(head, iterator))
    return { body, size: body.size }
  }
  return { body: Buffer.concat(head, size), size }
}

/** What has been read already, then the rest. */
async function* rejoin(
  head: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}
