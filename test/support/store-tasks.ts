import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import { isLargeBody, isResource } from '../../src/stores/rules.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { changeIndexed } from './change-indexed.ts'
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
  /** Writes and reads one content: writes by how many MiB the process has grown at most, and how fast it was. */
  | { readonly task: 'large'; readonly mebibytes: number }
  /** Changes items until it is killed, and lists them by an index of its own. A line follows each change. */
  | { readonly task: 'change-indexed'; readonly writer: number; readonly version: string }

export interface StoreJob {
  readonly place: StorePlace
  readonly task: StoreTask
}

export const COUNTERS: readonly string[] = ['/counters/a', '/counters/b', '/counters/c']
const PATHS_OF_A_WRITER = 8

/** From here on one of forty numbers stands for content that a bucket takes in parts. */
export const IN_PARTS = 1_000_000_000

/** The content of a write, all of it known from the number: every fourth is large and comes as a stream. */
export function createNumberedBytes(number: number): Buffer {
  if (number >= IN_PARTS && number % 40 === 5) {
    const bytes = Buffer.alloc(9 * MEBIBYTE, number & 0xff)
    bytes.writeUInt32BE(number)
    return bytes
  }
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
  if (task.task === 'large') return large(store, task.mebibytes, tell)
  if (task.task === 'change-indexed') return changeIndexed(store, task.writer, task.version, tell)
  if (task.task === 'create') return create(store, task.count, tell)
  return write(store, task.writer, task.from, tell)
}

async function large(store: ResourceStore, mebibytes: number, tell: (line: string) => void): Promise<void> {
  const chunk = createBytes(65_536, 1)
  async function* source(chunks: number): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < chunks; count++) yield chunk
  }
  const content = (size: number) => ({ contentType: 'application/octet-stream', body: source(size * 16) })
  const read = async (resource: StoredResource, first = 0, last = resource.size - 1): Promise<number> => {
    let size = 0
    if (!isLargeBody(resource.body)) throw new Error('It is small.')
    for await (const bytes of resource.body.open(first, last)) size += bytes.length
    return size
  }
  // All code is loaded.
  await store.write('/large', content(32), { expect: 'any' })
  await read((await store.read('/large')) as StoredResource)
  const before = process.memoryUsage.rss()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 5)
  const begin = performance.now()
  await store.write('/large', content(mebibytes), { expect: 'any' })
  const written = performance.now()
  const resource = (await store.read('/large')) as StoredResource
  const size = await read(resource)
  const done = performance.now()
  const last = resource.size - 1
  for (const [from, to] of [
    [0, 0],
    [last, last],
    [last >> 1, (last >> 1) + 1_000_000],
    [1, last - 1],
  ] as const) {
    if ((await read(resource, from, to)) !== to - from + 1) throw new Error(`Bytes ${from} to ${to} are incomplete.`)
  }
  clearInterval(timer)
  if (size !== mebibytes * 1_048_576) throw new Error(`Of ${mebibytes} MiB ${size} bytes came back.`)
  const rate = (from: number, to: number): number => Math.round((mebibytes / (to - from)) * 1000)
  tell(`${Math.round((most - before) / 1_048_576)} ${rate(begin, written)} ${rate(written, done)}`)
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
