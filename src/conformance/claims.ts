import { AssertionError } from 'node:assert'
import { createHash } from 'node:crypto'
import { inspect, isDeepStrictEqual } from 'node:util'
import { viewOf } from '../core/byte-blocks.ts'
import { SHORT } from '../core/reply.ts'
import { waitAtMost } from '../core/time.ts'
import { isEntityTag } from '../protocol/preconditions.ts'
import { isLargeBody, isResource } from '../stores/rules.ts'
import { readWhole } from '../stores/streams.ts'
import type { Content, ResourceStore, SmallBody, StoredResource, StoredState } from '../stores/types.ts'

/** Fails with a sentence unless a condition holds. */
export function claim(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new AssertionError({ message: sentence, stackStartFn: claim })
}

/** Fails with a sentence and both values unless they are equal. */
export function claimEqual(actual: unknown, expected: unknown, sentence: string): void {
  if (isDeepStrictEqual(actual, expected)) return
  const message = `${sentence} Expected: ${show(expected)}. Found: ${show(actual)}.`
  throw new AssertionError({ message, actual, expected, operator: 'claimEqual', stackStartFn: claimEqual })
}

/** Fails with a sentence unless a call throws or rejects. */
export async function claimFails(call: () => unknown, sentence: string): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  throw new AssertionError({ message: sentence, stackStartFn: claimFails })
}

export function claimResource(state: StoredState, sentence: string): StoredResource {
  claim(isResource(state), `${sentence} Found: ${show(state)}.`)
  return state
}

export function claimTombstone(state: StoredState, path: string, sentence: string): void {
  claim(state !== undefined && !isResource(state), `${sentence} Found: ${show(state)}.`)
  claimEqual(state.path, path, `${sentence} It is that of another path.`)
  const { removed, removedAt } = state
  claimEqual(removed, true, 'A tombstone says that the resource was removed.')
  const isTime = Number.isInteger(removedAt) && Math.abs(removedAt - Date.now()) < 600_000
  claim(isTime, `A tombstone says when the resource was removed, in milliseconds; ${removedAt} is not that time.`)
}

export async function claimContent(state: StoredState, content: Content, sentence: string): Promise<void> {
  const resource = claimResource(state, sentence)
  const expected = toBuffer(content.body as SmallBody)
  claimEqual(resource.contentType, content.contentType, `${sentence} The media type is another.`)
  claimEqual(resource.size, expected.length, `${sentence} The size is wrong.`)
  const { entityTag = '' } = resource
  claim(entityTag === '' || isEntityTag(entityTag), `${sentence} The entity tag is malformed: ${show(entityTag)}.`)
  claimBytes(await readContent(resource), expected, sentence)
  const { sha256 } = resource
  if (sha256 === undefined) return
  claimEqual(Buffer.from(sha256), createHash('sha256').update(expected).digest(), `${sentence} The digest is wrong.`)
}

export async function claimStored(
  store: ResourceStore,
  path: string,
  content: Content,
  sentence: string,
): Promise<void> {
  await claimContent(await store.read(path), content, sentence)
}

/** Fails unless exactly one of some calls has done something. @returns which */
export function claimOneWinner(results: readonly { readonly outcome: string }[], sentence: string): number {
  const winners = results.flatMap(({ outcome }, i) => (outcome === 'conflict' ? [] : [i]))
  claimEqual(winners.length, 1, sentence)
  return winners[0]!
}

/** Fails unless two byte strings are equal; tells where they part. */
export function claimBytes(actual: Uint8Array, expected: Uint8Array, sentence: string): void {
  if (Buffer.compare(actual, expected) === 0) return
  let at = 0
  while (at < actual.length && actual[at] === expected[at]) at++
  const lengths = `Expected ${expected.length} bytes and found ${actual.length}`
  const message = `${sentence} ${lengths}; they differ from byte ${at} on.`
  throw new AssertionError({ message, stackStartFn: claimBytes })
}

/**
 * Fails unless a call is settled in time.
 * @param sentence what is said otherwise; a function makes it of what is known by then
 * @param limit milliseconds
 */
export async function claimSettles<Result>(
  call: Promise<Result>,
  sentence: string | (() => string),
  limit = 10_000,
): Promise<Result> {
  if (await waitAtMost(limit, call)) return call
  const message = typeof sentence === 'string' ? sentence : sentence()
  throw new AssertionError({ message, stackStartFn: claimSettles })
}

/** Milliseconds for a range of content: less than for a case, so that it is the range that is named. */
const READ_LIMIT = 20_000

export function readContent(resource: StoredResource): Promise<Buffer> {
  return readRange(resource, 0, resource.size - 1)
}

/** The bytes of a range, by whatever way the body offers. */
export async function readRange({ path, body }: StoredResource, first: number, last: number): Promise<Buffer> {
  if (!isLargeBody(body)) return toBuffer(body).subarray(first, last + 1)
  if (last < first) return Buffer.alloc(0)
  const range = `bytes ${first} to ${last} of ${path}`
  const opened = readWhole(body.open(first, last))
  const bytes = await claimSettles(opened, `A call was never answered: open, for ${range}.`, READ_LIMIT)
  if (body.read !== undefined && last - first < SHORT) {
    const unanswered = `A call was never answered: read, for ${range}.`
    const read = async (options?: { buffer: Uint8Array }) => body.read!(first, last, options)
    const fresh = await claimSettles(read(), unanswered, READ_LIMIT)
    const filled = await claimSettles(read({ buffer: Buffer.alloc(SHORT, 1) }), unanswered, READ_LIMIT)
    for (const pieces of [fresh, filled]) {
      const atOnce = pieces instanceof Uint8Array ? pieces : Buffer.concat(pieces)
      claim(bytes.equals(atOnce), `Bytes ${first} to ${last} are other ones when they are read at once.`)
    }
  }
  return bytes
}

export function toBuffer(body: SmallBody): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : viewOf(body)
}

function show(value: unknown): string {
  return inspect(value, { depth: 2, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 200, maxArrayLength: 20 })
}
