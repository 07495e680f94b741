import { createBytes, stream } from '../../src/stores/conformance/samples.ts'
import { isLargeBody, isResource, type ResourceStore, type StoredResource } from '../../src/stores/types.ts'
import { createMember } from './create-member.ts'
import type { StorePlace } from './sql-stores.ts'

/** What a process of its own does with a store. Each line that it writes to its output tells of something done. */
export type StoreTask =
  /** Counts up, by compare-and-swap, in `count` steps spread over a few paths: writes `counted`. */
  | { readonly task: 'count'; readonly count: number }
  /** Creates members, eight at a time, and writes their names. */
  | { readonly task: 'create'; readonly count: number }
  /** Writes until it is killed. A line `path number` follows each acknowledged write. */
  | { readonly task: 'write'; readonly writer: number; readonly from: number }

export interface StoreJob {
  readonly place: StorePlace
  readonly task: StoreTask
}

export const COUNTERS: readonly string[] = ['/counters/a', '/counters/b', '/counters/c']
const PATHS_OF_A_WRITER = 8

/** The content of a write, all of it known from the number: every fourth is large and comes as a stream. */
export function createNumberedBytes(number: number): Buffer {
  const bytes = createBytes(number % 4 === 3 ? 200_000 + (number % 7) * 10_000 : 20 + (number % 50), number)
  bytes.writeUInt32BE(number)
  return bytes
}

export async function readBytes(resource: StoredResource): Promise<Buffer> {
  const { body } = resource
  if (!isLargeBody(body)) return Buffer.from(body as Uint8Array)
  const chunks: Buffer[] = []
  for await (const chunk of body.open(0, resource.size - 1)) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

export async function runTask(store: ResourceStore, task: StoreTask, tell: (line: string) => void): Promise<void> {
  if (task.task === 'count') return count(store, task.count, tell)
  if (task.task === 'create') return create(store, task.count, tell)
  return write(store, task.writer, task.from, tell)
}

async function count(store: ResourceStore, steps: number, tell: (line: string) => void): Promise<void> {
  for (let step = 0; step < steps; step++) {
    const path = COUNTERS[step % COUNTERS.length]!
    for (let isDone = false; !isDone; ) {
      const state = await store.read(path)
      const value = isResource(state) ? Number(Buffer.from(state.body as Uint8Array).toString()) : 0
      const content = { contentType: 'text/plain', body: String(value + 1) }
      const expect = isResource(state) ? { version: state.version } : 'absent'
      isDone = (await store.write(path, content, { expect })).outcome !== 'conflict'
    }
    tell('counted')
  }
}

async function create(store: ResourceStore, members: number, tell: (line: string) => void): Promise<void> {
  for (let made = 0; made < members; made += 8) {
    const results = await Promise.all(
      Array.from({ length: Math.min(8, members - made) }, async () =>
        createMember(store, '/members', (name) => ({ contentType: 'text/plain', body: name })),
      ),
    )
    for (const { path } of results) tell(path)
  }
}

async function write(store: ResourceStore, writer: number, from: number, tell: (line: string) => void): Promise<void> {
  for (let number = from; ; number++) {
    const path = `/written/${writer}-${number % PATHS_OF_A_WRITER}`
    const bytes = createNumberedBytes(number)
    const body = bytes.length > 1000 ? stream(bytes, 30_000) : bytes
    await store.write(path, { contentType: 'application/octet-stream', body }, { expect: 'any' })
    tell(`${path} ${number}`)
  }
}
