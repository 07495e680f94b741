import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { expect } from 'vitest'
import type { ServiceProgram, StoreProcess } from './processes.ts'
import { openStore, type StorePlace } from './sql-stores.ts'

/** As much of an answer as its repetition has as well. */
interface KeyedAnswer {
  readonly status: number
  readonly text: string
  readonly location: string
  readonly isReplay: boolean
}

const contentOf = (key: string): string => JSON.stringify({ key, note: 'Zoë' })

async function create(pool: Pool, key: string): Promise<KeyedAnswer> {
  const { statusCode, headers, body } = await pool.request({
    method: 'POST',
    path: '/items',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
    body: contentOf(key),
  })
  return {
    status: statusCode,
    text: await body.text(),
    location: `${headers['location']} ${headers['etag']} ${headers['content-location']} ${headers['content-type']}`,
    isReplay: headers['idempotency-replayed'] === '?1',
  }
}

async function open(process: StoreProcess, connections: number): Promise<Pool> {
  await process.told(1)
  return new Pool(`http://127.0.0.1:${process.lines[0]}`, { connections })
}

/** How many items there are for each key. */
async function countByKey(place: StorePlace): Promise<ReadonlyMap<string, number>> {
  const { store, close } = openStore(place)
  const counts = new Map<string, number>()
  let after: string | undefined
  do {
    const page = await store.list('/items', { limit: 500, after })
    for (const { body } of page.items) {
      const { key } = JSON.parse(typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString())
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    after = page.next
  } while (after !== undefined)
  await close()
  return counts
}

/**
 * Two processes are sent each key several times at once: one effect a key, one answer, no failure.
 * @param writers requests that are under way at a time
 */
export async function raceForKeys(
  program: ServiceProgram,
  place: StorePlace,
  { keys, perKey, writers }: { readonly keys: number; readonly perKey: number; readonly writers: number },
): Promise<void> {
  const processes = [program.start(place, 0), program.start(place, 0)]
  const pools = await Promise.all(processes.map((process) => open(process, writers / 2)))
  const answers = new Map<string, KeyedAnswer[]>()
  const names = Array.from({ length: keys }, () => randomUUID())
  let next = 0
  const write = async (): Promise<void> => {
    for (let at = next++; at < keys * perKey; at = next++) {
      const key = names[Math.floor(at / perKey)]!
      const answer = await create(pools[at % 2]!, key)
      const all = answers.get(key) ?? []
      answers.set(key, [...all, answer])
    }
  }
  await Promise.all(Array.from({ length: writers }, write))
  await Promise.all(pools.map((pool) => pool.close()))
  await Promise.all(processes.map((process) => process.kill()))
  for (const all of answers.values()) {
    expect(all.map(({ status }) => status)).toEqual(new Array(perKey).fill(201))
    expect(new Set(all.map(({ text, location }) => `${text} ${location}`)).size).toBe(1)
    expect(all.filter(({ isReplay }) => !isReplay)).toHaveLength(1)
  }
  expect([...(await countByKey(place))].sort()).toEqual(names.map((name) => [name, 1] as const).sort())
}

/** A process is killed while it is sent keys, and each key is sent again until it is answered, and then once more. */
export async function killWhileKeyed(
  program: ServiceProgram,
  place: StorePlace,
  { kills, clients = 6 }: { readonly kills: number; readonly clients?: number },
): Promise<void> {
  const first = new Map<string, KeyedAnswer>()
  let pending = new Set<string>()
  const names: string[] = []
  let lost = 0

  async function send(pool: Pool, key: string): Promise<void> {
    const answer = await create(pool, key)
    expect(answer.status).toBe(201)
    const before = first.get(key)
    if (before === undefined) first.set(key, answer)
    else expect({ ...answer, isReplay: true }).toEqual({ ...before, isReplay: true })
    pending.delete(key)
  }

  for (let round = 0; round <= kills; round++) {
    const process = program.start(place, 0)
    const pool = await open(process, clients)
    const repeated = [...pending, ...names.slice(-20)]
    pending = new Set(pending)
    let isOver = false
    const work = Promise.allSettled(
      Array.from({ length: clients }, async () => {
        for (let key = repeated.pop(); key !== undefined && !isOver; key = repeated.pop()) await send(pool, key)
        while (!isOver && round < kills) {
          const key = randomUUID()
          names.push(key)
          pending.add(key)
          await send(pool, key)
        }
      }),
    )
    if (round < kills) {
      await sleep(Math.random() * 150)
      isOver = true
      lost += pending.size
      await process.kill()
    }
    const faults = (await work).flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))
    // What the kill has cut off, and nothing else.
    expect(
      faults.filter((fault) => round === kills || !/SocketError|ECONNREFUSED|ECONNRESET|closed/.test(fault)),
    ).toEqual([])
    await pool.destroy()
    if (round === kills) await process.kill()
  }
  expect(pending.size).toBe(0)
  expect(lost).toBeGreaterThan(0)
  expect([...(await countByKey(place))].sort()).toEqual(names.map((name) => [name, 1] as const).sort())
}
