import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type ClaimedWork, createWorkQueue, LEASE, type WorkQueue, type WorkRecord } from '../../src/work/queue.ts'
import { createWorkRunner, type WorkHandler } from '../../src/work/runner.ts'
import { inTime, readNoting } from '../../src/work/store-calls.ts'

const closers: (() => void)[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const close of closers.splice(0)) close()
})

function collectFailures(): unknown[] {
  const failures: unknown[] = []
  const add = (event: unknown): void => void failures.push(event)
  subscribe('http-resource-service:failure', add)
  closers.push(() => unsubscribe('http-resource-service:failure', add))
  return failures
}

/** Starts work that lasts until it is ended. */
async function startWork(store: ResourceStore) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const queue = createWorkQueue(store, Date.now)
  const renew = vi.spyOn(queue, 'renew')
  const { path, content } = queue.record('1', { kind: 'process', pattern: '/jobs', path: '/jobs/1' })
  await store.write(path, content, { expect: 'absent' })
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const signals: AbortSignal[] = []
  const perform = (_: unknown, signal: AbortSignal): Promise<void> => {
    signals.push(signal)
    return ended
  }
  const handler = { perform, fail: async () => {} }
  const runner = createWorkRunner({ queue, handler, announce: () => {}, maxAttempts: 1 })
  const running = runner.run('1')
  await vi.waitFor(() => expect(signals).toHaveLength(1), 30_000)
  return { runner, running, renew, end, signal: signals[0]! }
}

it('renews the lease of work while the work lasts, and no longer', async () => {
  const { runner, running, renew, end, signal } = await startWork(memoryStore())
  for (let i = 0; i < 3; i++) {
    vi.advanceTimersToNextTimer()
    await nextTurn()
  }
  expect([renew.mock.calls.length, signal.aborted]).toEqual([3, false])
  end()
  expect(await running).toBe(true)
  vi.advanceTimersByTime(10 * LEASE)
  expect(renew).toHaveBeenCalledTimes(3)
  await runner.close()
})

it('does not take the lease for lost where the store is slower than the renewals follow each other', async () => {
  const store = memoryStore()
  let answer = (): void => {}
  let answered = Promise.resolve()
  const slow: ResourceStore = { ...store, write: (...write) => answered.then(() => store.write(...write)) }
  const { runner, running, renew, end, signal } = await startWork(slow)
  answered = new Promise((resolve) => {
    answer = resolve
  })
  for (let i = 0; i < 2; i++) vi.advanceTimersToNextTimer()
  answer()
  await nextTurn()
  vi.advanceTimersToNextTimer()
  await nextTurn()
  expect([renew.mock.calls.length, signal.aborted]).toEqual([2, false])
  end()
  expect(await running).toBe(true)
  await runner.close()
})

it('renews the lease anew once it would have run out, where the store never answers a renewal', async () => {
  const store = memoryStore()
  let hangs = false
  const hanging: ResourceStore = {
    ...store,
    write: (...write) => (hangs ? new Promise(() => {}) : store.write(...write)),
  }
  const { runner, running, renew, end, signal } = await startWork(hanging)
  hangs = true
  const calls: number[] = []
  for (let i = 0; i < 4; i++) {
    if (i === 3) hangs = false
    vi.advanceTimersToNextTimer()
    await nextTurn()
    calls.push(renew.mock.calls.length)
  }
  expect([calls, signal.aborted]).toEqual([[1, 1, 1, 2], false])
  end()
  expect(await running).toBe(true)
  await runner.close()
})

type Counts = Partial<Pick<WorkRecord, 'kind' | 'attempts' | 'spared'>> & { readonly maxAttempts?: number }

/** A runner with one piece of work, whose records are at hand. */
async function createRun(handler: Partial<WorkHandler>, { maxAttempts = 3, ...counts } = {} as Counts) {
  const store = memoryStore()
  const queue = createWorkQueue(store, Date.now)
  const { path, content } = queue.record('1', { kind: 'process', pattern: '/jobs', path: '/jobs/1' })
  const body = JSON.stringify({ ...JSON.parse(content.body as string), ...counts })
  await store.write(path, { ...content, body }, { expect: 'absent' })
  const announced: number[] = []
  const announce = (_: string, pause: number): void => void announced.push(pause)
  const whole: WorkHandler = { perform: async () => {}, fail: async () => {}, ...handler }
  const runner = createWorkRunner({ queue, handler: whole, announce, maxAttempts })
  async function readRecord(): Promise<WorkRecord | undefined> {
    const state = (await store.read(path)) as { body?: string } | undefined
    return state?.body === undefined ? undefined : JSON.parse(String(state.body))
  }
  return { store, queue, runner, announced, readRecord }
}

/** Finds and claims the work. */
async function claim(queue: WorkQueue): Promise<ClaimedWork | undefined> {
  const work = await queue.find('1')
  return work !== undefined && (await queue.claim(work)) ? work : undefined
}

function createGate<Value = undefined>() {
  let resolve: (value: Value) => void = () => {}
  let reject: (reason: unknown) => void = () => {}
  const promise = new Promise<Value>((...settle) => {
    ;[resolve, reject] = settle
  })
  return { promise, resolve, reject }
}

const refuse = (error: Error) => () => Promise.reject(error)

describe('the record of work', () => {
  it('stays until the work is done, and is gone then', async () => {
    const seen: (WorkRecord | undefined)[] = []
    const run = await createRun({ perform: async () => void seen.push(await run.readRecord()) })
    expect(await run.runner.run('1')).toBe(true)
    expect(seen).toMatchObject([{ attempts: 1 }])
    expect(await run.readRecord()).toBeUndefined()
    expect(await run.runner.run('1')).toBe(false)
  })

  it('stays where the failure of the work could not be recorded, and is gone once it is', async () => {
    const refusal = new HttpError(409, 'ERR_CONFLICT')
    const broken = await createRun({ perform: refuse(refusal), fail: refuse(new Error('The store is away.')) })
    await expect(broken.runner.run('1')).rejects.toThrow('The store is away.')
    expect(await broken.readRecord()).toBeDefined()
    const fail = vi.fn(async () => {})
    const sound = await createRun({ perform: refuse(refusal), fail })
    await sound.runner.run('1')
    expect(fail).toHaveBeenCalledTimes(1)
    expect(await sound.readRecord()).toBeUndefined()
  })
})

describe('work that fails', () => {
  it('is tried again after pauses that grow up to a minute, and no more often than maxAttempts', async () => {
    const failures = collectFailures()
    const pauses: number[] = []
    for (const attempts of [0, 1, 6, 7, 18]) {
      const fail = vi.fn(async () => {})
      const error = new HttpError(500, 'ERR_INTERNAL')
      const { runner, announced, readRecord } = await createRun(
        { perform: refuse(error), fail },
        { maxAttempts: 20, attempts },
      )
      const begin = Date.now()
      await runner.run('1')
      expect(fail).not.toHaveBeenCalled()
      const record = (await readRecord())!
      expect(record.attempts).toBe(attempts + 1)
      expect(record.notBefore).toBeGreaterThanOrEqual(begin + announced[0]!)
      pauses.push(...announced)
    }
    expect(pauses).toEqual([500, 1000, 32_000, 60_000, 60_000])
    const fail = vi.fn(async () => {})
    const last = await createRun({ perform: refuse(new Error('no')), fail }, { maxAttempts: 20, attempts: 19 })
    await last.runner.run('1')
    expect([fail.mock.calls.length, last.announced]).toEqual([1, []])
    expect(failures).toHaveLength(6)
    expect(failures[0]).toMatchObject({ stage: 'background', route: '/jobs' })
  })

  it('counts no attempt that the store has brought to nothing, with pauses that grow, for about a day, a removal for an hour', async () => {
    collectFailures()
    for (const [spared, isTried, pause, kind = 'process'] of [
      [0, true, 500],
      [3, true, 4000],
      [1439, true, 60_000],
      [1440, false, undefined],
      [59, true, 60_000, 'remove'],
      [60, false, undefined, 'remove'],
    ] as const) {
      const fail = vi.fn(async () => {})
      const perform = () => inTime(Promise.reject(new HttpError(503, 'ERR_UNAVAILABLE')))
      const run = await createRun({ perform, fail }, { maxAttempts: 1, spared, kind })
      await run.runner.run('1')
      expect([fail.mock.calls.length, run.announced[0]]).toEqual([isTried ? 0 : 1, pause])
      if (isTried) expect(await run.readRecord()).toMatchObject({ attempts: 0, spared: spared + 1 })
    }
  })

  it('counts no attempt whose end alone the store could not record', async () => {
    collectFailures()
    const fail = vi.fn(async () => {})
    const { runner, queue, readRecord } = await createRun({ fail }, { maxAttempts: 1 })
    vi.spyOn(queue, 'finish').mockRejectedValueOnce(new HttpError(503, 'ERR_UNAVAILABLE'))
    expect(await runner.run('1')).toBe(true)
    expect([fail.mock.calls.length, await readRecord()]).toMatchObject([0, { attempts: 0, spared: 1 }])
  })

  it('is put back once a store is there again that was away when it failed, or left to its lease when the runner closes', async () => {
    collectFailures()
    const away = new HttpError(503, 'ERR_UNAVAILABLE')
    const { runner, queue, announced, readRecord } = await createRun({ perform: () => inTime(Promise.reject(away)) })
    vi.spyOn(queue, 'postpone').mockRejectedValueOnce(away)
    expect(await runner.run('1')).toBe(true)
    expect([announced, await readRecord()]).toMatchObject([[500], { attempts: 0, spared: 1 }])
    const other = await createRun({ perform: () => inTime(Promise.reject(away)) })
    vi.spyOn(other.queue, 'postpone').mockRejectedValue(away)
    const running = other.runner.run('1')
    running.catch(() => {})
    await vi.waitFor(() => expect(other.queue.postpone).toHaveBeenCalled())
    await other.runner.close()
    await expect(running).rejects.toThrow('aborted')
  })

  it('fails with what it has failed with once a store is there again that was away then', async () => {
    collectFailures()
    const reasons: unknown[] = []
    const fail = vi.fn(async (_: unknown, error: unknown) => void reasons.push(error))
    fail.mockRejectedValueOnce(new HttpError(503, 'ERR_UNAVAILABLE'))
    const virus = new HttpError(422, 'ERR_VIRUS')
    const { runner, readRecord } = await createRun({ perform: refuse(virus), fail }, { maxAttempts: 1 })
    expect(await runner.run('1')).toBe(true)
    expect([reasons, await readRecord()]).toEqual([[virus], undefined])
  })

  it('fails at once with an error in the place of what it has thrown, where that cannot be read', async () => {
    collectFailures()
    const reasons: unknown[] = []
    const fail = async (_: unknown, error: unknown) => void reasons.push(String(error))
    const unreadable = Object.defineProperty(new Error('secret'), 'cause', {
      get() {
        throw new Error('a getter')
      },
    })
    const { runner, readRecord } = await createRun({ perform: refuse(unreadable), fail }, { maxAttempts: 1 })
    expect(await runner.run('1')).toBe(true)
    expect([reasons, await readRecord()]).toEqual([['TypeError: What was thrown cannot be read.'], undefined])
  })

  it('gives its place to other work where its failure alone cannot be recorded', async () => {
    collectFailures()
    const fail = vi.fn(refuse(new HttpError(503, 'ERR_UNAVAILABLE')))
    const { runner, readRecord } = await createRun({ perform: refuse(new HttpError(422, 'ERR_VIRUS')), fail })
    await expect(runner.run('1')).rejects.toMatchObject({ status: 503 })
    expect([fail.mock.calls.length, await readRecord()]).toMatchObject([3, { attempts: 1 }])
  })

  it('counts no attempt whose request has a body that the store fails to give', async () => {
    collectFailures()
    const server = createServer((req, res) => void req.resume().on('end', () => res.end()))
    closers.push(() => server.close().closeAllConnections())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    async function* away(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('part')
      throw new HttpError(503, 'ERR_UNAVAILABLE')
    }
    const init = () => ({ method: 'POST', body: readNoting(away()), duplex: 'half' })
    const perform = async () => void (await fetch(url, init() as unknown as RequestInit))
    const { runner, readRecord } = await createRun({ perform }, { maxAttempts: 1 })
    expect(await runner.run('1')).toBe(true)
    expect(await readRecord()).toMatchObject({ attempts: 0, spared: 1 })
  })

  it('counts no attempt either where its fetch fails with an Error of another realm, as under Jest', async () => {
    collectFailures()
    const wrap = runInNewContext('(cause) => new TypeError("fetch failed", { cause })')
    async function* away(): AsyncGenerator<Uint8Array> {
      yield* []
      throw new HttpError(503, 'ERR_UNAVAILABLE')
    }
    const perform = async () => {
      try {
        for await (const _ of readNoting(away()));
      } catch (error) {
        throw wrap(error)
      }
    }
    const { runner, readRecord } = await createRun({ perform }, { maxAttempts: 1 })
    expect(await runner.run('1')).toBe(true)
    expect(await readRecord()).toMatchObject({ attempts: 0, spared: 1 })
  })

  it('is announced once it is put back, and not where that fails', async () => {
    const { runner, queue, announced, readRecord } = await createRun({ perform: refuse(new Error('no')) })
    const postpone = vi.spyOn(queue, 'postpone')
    postpone.mockRejectedValueOnce(new Error('The store is away.'))
    await expect(runner.run('1')).rejects.toThrow('The store is away.')
    expect([announced, await readRecord()]).toMatchObject([[], { attempts: 1 }])
  })

  it('is tried as often as maxAttempts says, and not once more where it ended the process each time', async () => {
    for (const [attempts, performs] of [
      [2, 1],
      [3, 0],
    ]) {
      const perform = vi.fn(async () => {})
      const fail = vi.fn(async () => {})
      const { runner } = await createRun({ perform, fail }, { maxAttempts: 3, attempts: attempts! })
      await runner.run('1')
      expect([perform.mock.calls.length, fail.mock.calls.length]).toEqual([performs, 1 - performs!])
    }
  })
})

describe('the lease of work', () => {
  it('belongs to one of two processes that claim it at once', async () => {
    const { store, queue, readRecord } = await createRun({})
    const other = createWorkQueue(delayReads(store), Date.now)
    const claims = await Promise.all([claim(other), claim(other), claim(queue)])
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1)
    expect((await readRecord())!.attempts).toBe(1)
  })

  it('is lost where another process has the work, which is broken off, and not put back', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const ended = createGate()
    const begun = createGate<AbortSignal>()
    const perform: WorkHandler['perform'] = (_, signal) => {
      begun.resolve(signal)
      signal.addEventListener('abort', () => ended.reject(signal.reason))
      return ended.promise as Promise<never>
    }
    const { store, queue, runner, readRecord } = await createRun({ perform })
    const running = runner.run('1')
    const signal = await begun.promise
    // The clock of the other process is ahead.
    const other = createWorkQueue(store, () => Date.now() + 2 * LEASE)
    expect(await claim(other)).toBeDefined()
    vi.advanceTimersToNextTimer()
    await running
    expect(signal.reason.message).toBe('The lease of the work has been lost.')
    const record = (await readRecord())!
    expect([record.attempts, record.notBefore > Date.now() + LEASE]).toEqual([2, true])
    expect(await claim(queue)).toBeUndefined()
  })

  it('is seen by a process whose clock is ahead before it fails what has been tried often enough', async () => {
    const ended = createGate()
    const { store, runner, readRecord } = await createRun({ perform: () => ended.promise }, { maxAttempts: 1 })
    const running = runner.run('1')
    const queue = createWorkQueue(store, () => Date.now() + 2 * LEASE)
    const handler = { perform: vi.fn(async () => {}), fail: vi.fn(async () => {}) }
    const other = createWorkRunner({ queue, handler, announce: () => {}, maxAttempts: 1 })
    await vi.waitFor(async () => expect(await readRecord()).toMatchObject({ attempts: 1 }))
    expect(await other.run('1')).toBe(false)
    expect([handler.perform.mock.calls, handler.fail.mock.calls, await readRecord()]).toMatchObject([[], [], {}])
    const begin = performance.now()
    const last = other.run('1')
    await other.close()
    expect([await last, performance.now() - begin < LEASE / 4]).toEqual([false, true])
    ended.resolve(undefined)
    await running
    expect(await readRecord()).toBeUndefined()
  }, 30_000)

  it('is renewed in time, which does not keep the process alive', async () => {
    const setTimer = vi.spyOn(globalThis, 'setInterval')
    const { runner } = await createRun({})
    await runner.run('1')
    expect(setTimer.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    // Twice at least before it runs out.
    expect(setTimer.mock.calls[0]![1]).toBeLessThan(LEASE / 2)
    setTimer.mockRestore()
  })

  it('is renewed after a renewal that failed, which is reported', async () => {
    const failures = collectFailures()
    const { runner, running, renew, end, signal } = await startWork(memoryStore())
    renew.mockRejectedValueOnce(new Error('The store is away.'))
    for (let i = 0; i < 3; i++) {
      vi.advanceTimersToNextTimer()
      await nextTurn()
    }
    expect([renew.mock.calls.length, signal.aborted]).toEqual([3, false])
    expect(failures).toMatchObject([{ stage: 'background', error: { message: 'The store is away.' } }])
    end()
    await running
    await runner.close()
  })

  it('lasts from its last renewal on', async () => {
    const { store } = await createRun({})
    let time = Date.now()
    const queue = createWorkQueue(store, () => time)
    const work = (await claim(queue))!
    time += LEASE - 1
    expect(await claim(queue)).toBeUndefined()
    expect(await queue.renew(work)).toBe(true)
    time += LEASE - 1
    expect(await claim(queue)).toBeUndefined()
    time += 1
    expect(await claim(queue)).toBeDefined()
    expect(await queue.renew(work)).toBe(false)
  })

  it('is lost to the claim of another process also where the attempt before it does not count', async () => {
    const { queue } = await createRun({})
    const work = (await claim(queue))!
    // It has been put back, and the answer has got lost.
    await queue.postpone({ ...work }, 0, { attempts: 0, spared: 1 })
    const other = (await claim(queue))!
    expect(other.record).toMatchObject({ attempts: 1, spared: 1 })
    expect(await queue.renew(work)).toBe(false)
    await queue.postpone(work, 500, { attempts: 0, spared: 1 })
    expect(await queue.renew(other)).toBe(true)
  })

  it('is had once, and counts one attempt, where the answer to the claim has got lost', async () => {
    const away = new HttpError(503, 'ERR_UNAVAILABLE')
    for (const isMade of [true, false]) {
      const attempts: number[] = []
      const perform: WorkHandler['perform'] = async ({ record }) => void attempts.push(record.attempts)
      const fail = vi.fn(async () => {})
      const { store, queue, runner, readRecord } = await createRun({ perform, fail }, { maxAttempts: 1 })
      const { claim: make } = queue
      vi.spyOn(queue, 'claim').mockImplementationOnce(async (work) => {
        if (isMade) await make({ ...work })
        throw away
      })
      expect(await runner.run('1')).toBe(true)
      expect([attempts, fail.mock.calls, await readRecord()]).toEqual([[1], [], undefined])
      expect(await store.read('work/1')).toBeUndefined()
    }
  })

  it('is had also where the answers of a store that is there get lost repeatedly', async () => {
    const perform = vi.fn(async () => {})
    const { queue, runner } = await createRun({ perform }, { maxAttempts: 1 })
    const { claim: make } = queue
    const lose: WorkQueue['claim'] = async (work) => {
      await make(work)
      throw new HttpError(503, 'ERR_UNAVAILABLE')
    }
    vi.spyOn(queue, 'claim').mockImplementationOnce(lose).mockImplementationOnce(lose).mockImplementationOnce(lose)
    expect(await runner.run('1')).toBe(true)
    expect(perform).toHaveBeenCalledOnce()
  })

  it('is not ended by a process that found the store away: the one that has the claim could not renew it', async () => {
    const fail = vi.fn(async () => {})
    const { store, queue, runner, readRecord } = await createRun({ fail }, { maxAttempts: 1 })
    let time = Date.now() - 2 * LEASE
    const owner = createWorkQueue(store, () => time)
    const work = (await claim(owner))!
    vi.spyOn(queue, 'claim').mockRejectedValueOnce(new HttpError(503, 'ERR_UNAVAILABLE'))
    await expect(runner.run('1')).rejects.toMatchObject({ status: 503 })
    time = Date.now()
    expect([await owner.renew(work), await runner.run('1')]).toEqual([true, false])
    expect([fail.mock.calls, await readRecord()]).toMatchObject([[], { attempts: 1 }])
  }, 30_000)

  it('is not taken from a process that was faster, where the answer to the claim has got lost', async () => {
    const perform = vi.fn(async () => {})
    const { store, queue, runner } = await createRun({ perform })
    const other = createWorkQueue(store, Date.now)
    vi.spyOn(queue, 'claim').mockImplementationOnce(async () => {
      await claim(other)
      throw new HttpError(503, 'ERR_UNAVAILABLE')
    })
    expect(await runner.run('1')).toBe(false)
    expect(perform).not.toHaveBeenCalled()
  })

  it('is not taken up again by a renewal that was under way when the work was put back', async () => {
    const { queue, readRecord } = await createRun({})
    const work = (await claim(queue))!
    const early = { ...work }
    await queue.postpone(work, 500, { attempts: 0, spared: 1 })
    expect(await queue.renew(early)).toBe(false)
    expect(await readRecord()).toMatchObject({ attempts: 0, spared: 1 })
  })

  it('is put back also after a renewal whose answer has got lost', async () => {
    const { queue, readRecord } = await createRun({})
    const work = (await claim(queue))!
    await queue.renew({ ...work })
    await queue.postpone(work, 500, { attempts: 0, spared: 1 })
    expect(await readRecord()).toMatchObject({ attempts: 0, spared: 1 })
  })

  it('is not taken back with the work after an attempt, which may have removed the resource', async () => {
    for (const counts of [{ attempts: 1 }, { spared: 1 }]) {
      const { store, queue, readRecord } = await createRun({}, counts)
      await store.write('monitors/1', { contentType: 'application/json', body: '{}' }, { expect: 'absent' })
      expect(await queue.withdraw('1', 'monitors/1')).toBe(false)
      expect(await readRecord()).toBeDefined()
    }
  })

  it('is not taken back with the work once another process has claimed it meanwhile', async () => {
    const { store, queue, readRecord } = await createRun({})
    await store.write('monitors/1', { contentType: 'application/json', body: '{}' }, { expect: 'absent' })
    const withdrawn = createWorkQueue(delayReads(store), Date.now).withdraw('1', 'monitors/1')
    expect(await claim(queue)).toBeDefined()
    expect(await withdrawn).toBe(false)
    expect(await readRecord()).toBeDefined()
    expect(await store.read('monitors/1')).toBeDefined()
  })
})

/** A store whose reads have their state at once, and pass it on later. */
function delayReads(store: ResourceStore): ResourceStore {
  return {
    ...store,
    async read(...values) {
      const state = await store.read(...values)
      for (let turn = 0; turn < 5; turn++) await nextTurn()
      return state
    },
  }
}

describe('due', () => {
  async function createRecords(notBefore: readonly number[], store = memoryStore()): Promise<WorkQueue> {
    const queue = createWorkQueue(store, () => 1000)
    for (const [i, due] of notBefore.entries()) {
      const record = { kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 0, notBefore: due }
      const content = { contentType: 'application/json', body: JSON.stringify(record) }
      await store.write(`work/${String(i).padStart(4, '0')}`, content, { expect: 'absent' })
    }
    return queue
  }

  it('finds work behind more records than a page has, up to the limit', async () => {
    const queue = await createRecords([...Array(350).fill(5000), ...Array(30).fill(1000)])
    const { ids, wait } = await queue.due(20)
    expect([ids.length, ids[0], wait]).toEqual([20, '0350', 4000])
  })

  it('looks no further once it has found as much as is asked for', async () => {
    const store = memoryStore()
    const list = vi.spyOn(store, 'list')
    expect((await (await createRecords(Array(350).fill(1000), store)).due(120)).ids).toHaveLength(120)
    expect(list).toHaveBeenCalledTimes(2)
  })

  it('fails where the store does, and takes no record for one of somebody else', async () => {
    const away = new HttpError(503, 'ERR_UNAVAILABLE')
    const body = {
      open(): never {
        throw away
      },
    }
    const inner = memoryStore()
    const list: ResourceStore['list'] = async (...call) => {
      const { items } = await inner.list(...call)
      return { items: items.map((item) => ({ ...item, body })) }
    }
    const queue = await createRecords([1000], { ...inner, list })
    await expect(queue.due(10)).rejects.toBe(away)
  })

  it('says when the next work is due', async () => {
    expect(await (await createRecords([3000, 1500, 4000])).due(10)).toEqual({ ids: [], wait: 500 })
    expect(await (await createRecords([])).due(10)).toEqual({ ids: [], wait: undefined })
    expect((await (await createRecords([1000, 1001])).due(10)).ids).toEqual(['0000'])
  })
})

describe('close', () => {
  it('breaks off what is running, waits for it, puts it back, and takes no more', async () => {
    const ended = createGate()
    const begun = createGate()
    const perform: WorkHandler['perform'] = async (_, signal) => {
      begun.resolve(undefined)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await ended.promise
      throw signal.reason
    }
    const { runner, readRecord } = await createRun({ perform })
    const running = runner.run('1')
    await begun.promise
    let isClosed = false
    const closed = runner.close().then(() => {
      isClosed = true
    })
    expect(await runner.run('1')).toBe(false)
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    expect(isClosed).toBe(false)
    ended.resolve(undefined)
    await closed
    await running
    const record = (await readRecord())!
    expect([record.attempts, record.notBefore <= Date.now()]).toEqual([0, true])
    expect([await runner.run('1'), (await readRecord())!.attempts]).toEqual([false, 0])
  })

  it('records what has failed for good although the service is closing', async () => {
    const fail = vi.fn(async () => {})
    const perform: WorkHandler['perform'] = async (_, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw new HttpError(409, 'ERR_CONFLICT')
    }
    const { runner, readRecord } = await createRun({ perform, fail })
    const running = runner.run('1')
    await nextTurn()
    await nextTurn()
    await runner.close()
    await running
    expect(fail).toHaveBeenCalledTimes(1)
    expect(await readRecord()).toBeUndefined()
  })

  it('leaves work to its lease that does not heed the signal, after five seconds', async () => {
    const begun = createGate()
    const perform = () => {
      begun.resolve(undefined)
      return new Promise<void>(() => {})
    }
    const { runner, readRecord } = await createRun({ perform })
    void runner.run('1')
    await begun.promise
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const closed = runner.close()
    vi.advanceTimersByTime(5000)
    await closed
    expect(await readRecord()).toMatchObject({ attempts: 1 })
  })

  it('leaves no timer behind, and work alone that has ended', async () => {
    const signals: AbortSignal[] = []
    const { runner } = await createRun({ perform: async (_, signal) => void signals.push(signal) })
    await runner.run('1')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await runner.close()
    expect([vi.getTimerCount(), signals.map(({ aborted }) => aborted)]).toEqual([0, [false]])
  })
})

it('work whose record is read while its service closes is not begun, and is put back', async () => {
  const inner = memoryStore()
  const read = createGate()
  const begun = createGate()
  const store: ResourceStore = {
    ...inner,
    async read(path, ...options) {
      if (path === '/jobs/1') {
        begun.resolve(undefined)
        await read.promise
      }
      return inner.read(path, ...options)
    },
  }
  const process = vi.fn(() => new Promise<undefined>(() => {}))
  const service = createResourceService(store, { resources: { '/jobs': collection({ create: 'accepted', process }) } })
  const server = createServer(service).listen(0, '127.0.0.1')
  closers.push(() => void server.close())
  await once(server, 'listening')
  const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`
  const headers = { 'Content-Type': 'application/json' }
  expect((await fetch(target, { method: 'POST', headers, body: '{}' })).status).toBe(202)
  await begun.promise
  const closed = service.close()
  read.resolve(undefined)
  await closed
  expect(process).not.toHaveBeenCalled()
  const { ids } = await createWorkQueue(inner, Date.now).due(10)
  expect(ids).toHaveLength(1)
})
