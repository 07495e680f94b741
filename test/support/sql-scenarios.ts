import { expect, vi } from 'vitest'
import { stream } from '../../src/conformance/samples.ts'
import { isLargeBody, isResource } from '../../src/stores/rules.ts'
import type { StoredResource } from '../../src/stores/types.ts'
import { listKeys } from './contents.ts'
import type { StoreProgram } from './processes.ts'
import { openContents, openStore, type StorePlace } from './sql-stores.ts'
import { COUNTERS, createNumberedBytes, IN_PARTS, readBytes } from './store-tasks.ts'

/** Processes write and are killed; whatever was acknowledged must be there, or something later, and never a part. */
export async function killWriters(
  program: StoreProgram,
  place: StorePlace,
  { kills, writers, acknowledged }: { kills: number; writers: number; acknowledged: number },
): Promise<void> {
  const last = new Map<string, number>()
  for (let round = 1; round <= kills; round++) {
    const from = (place.s3 === undefined ? 0 : IN_PARTS) + round * 1_000_000
    const processes = Array.from({ length: writers }, (_, writer) =>
      program.start({ place, task: { task: 'write', writer, from } }),
    )
    await Promise.all(processes.map((process) => process.told(acknowledged + Math.floor(Math.random() * 20))))
    await Promise.all(processes.map((process) => process.kill()))
    for (const line of processes.flatMap((process) => process.lines)) {
      const [path, number] = line.split(' ')
      last.set(path!, Number(number))
    }
    await expectAll(place, last)
  }
}

async function expectAll(place: StorePlace, last: ReadonlyMap<string, number>): Promise<void> {
  const { store, close } = openStore(place)
  for (const [path, number] of last) {
    const state = await store.read(path)
    if (!isResource(state)) throw new Error(`${path} was acknowledged as ${number} and is gone.`)
    const bytes = await readBytes(state)
    const found = bytes.readUInt32BE()
    expect(found, path).toBeGreaterThanOrEqual(number)
    expect(bytes.equals(createNumberedBytes(found)), `${path} is torn`).toBe(true)
  }
  const { items } = await store.list('/written', { limit: 1000 })
  expect(items.map((item) => item.path)).toEqual(expect.arrayContaining([...last.keys()]))
  await close()
}

/** Clients leave in the midst of uploads: each path keeps what it had. */
export async function abortUploads(place: StorePlace, uploads: number): Promise<void> {
  const { store, close } = openStore(place)
  const path = '/written/aborted'
  const content = (body: Uint8Array | AsyncIterable<Uint8Array>) => ({ contentType: 'application/octet-stream', body })
  const kept = createNumberedBytes(3)
  await store.write(path, content(stream(kept, 30_000)), { expect: 'any' })
  async function abortOne(count: number): Promise<void> {
    const controller = new AbortController()
    const reason = new Error('The client has left.')
    // Every fourth in parts, if a bucket takes it.
    const size = count % 4 === 0 ? 20_000_000 : 300_000
    const stop = Math.floor(Math.random() * size)
    async function* leaving(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < size; at += 100_000) {
        if (at + 100_000 > stop) controller.abort(reason)
        yield Buffer.alloc(100_000, count)
      }
    }
    const write = store.write(path, content(leaving()), { expect: 'any', signal: controller.signal })
    await expect(write).rejects.toBe(reason)
  }
  for (let count = 0; count < uploads; count += 4) {
    await Promise.all([0, 1, 2, 3].map((more) => abortOne(count + more)))
    expect((await readBytes((await store.read(path)) as StoredResource)).equals(kept)).toBe(true)
  }
  await close()
}

/** After kills and aborted uploads: once the sweep has been, content is kept for the states alone, and every one is whole. */
export async function expectNoOrphans(place: StorePlace): Promise<void> {
  const { store, close } = openStore(place, { grace: 200, sweepInterval: 50 })
  const contents = openContents(place)!
  const { items } = await store.list('/written', { limit: 1000 })
  const large = items.filter(({ body }) => isLargeBody(body))
  expect(large.length).toBeGreaterThan(0)
  for (const item of large) expect((await readBytes(item)).length).toBe(item.size)
  await vi.waitFor(async () => expect(await listKeys(contents)).toHaveLength(large.length), 30_000)
  for (const item of large) expect((await readBytes(item)).length).toBe(item.size)
  await close()
}

/** Processes count up together by compare-and-swap: no step may be lost. */
export async function countTogether(
  program: StoreProgram,
  place: StorePlace,
  { processes, count }: { processes: number; count: number },
): Promise<void> {
  const started = Array.from({ length: processes }, () => program.start({ place, task: { task: 'count', count } }))
  await Promise.all(started.map((process) => process.done()))
  const { store, close } = openStore(place)
  let sum = 0
  for (const path of COUNTERS) {
    const state = await store.read(path)
    if (isResource(state)) sum += Number((await readBytes(state)).toString())
  }
  await close()
  expect(sum).toBe(processes * count)
}

/** Processes create members together: no name may be given twice. */
export async function createTogether(
  program: StoreProgram,
  place: StorePlace,
  { processes, count }: { processes: number; count: number },
): Promise<void> {
  const started = Array.from({ length: processes }, () => program.start({ place, task: { task: 'create', count } }))
  await Promise.all(started.map((process) => process.done()))
  const told = started.map((process) => process.lines.map((path) => Number(path.slice('/members/'.length))))
  const names = told.flat()
  expect(names).toHaveLength(processes * count)
  expect(new Set(names).size).toBe(names.length)
  const { store, close } = openStore(place)
  const members = new Set<string>()
  for (let after: string | undefined, isLast = false; !isLast; ) {
    const page = await store.list('/members', { limit: 500, after })
    for (const item of page.items) members.add(item.path)
    after = page.next
    isLast = after === undefined
  }
  await close()
  expect(members.size).toBe(names.length)
}
