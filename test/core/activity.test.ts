import { afterEach, describe, expect, it, vi } from 'vitest'
import { createActivity } from '../../src/core/activity.ts'
import type { Exchange } from '../../src/core/exchange.ts'

afterEach(() => void vi.useRealTimers())

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds, 'waits'))

function createExchange(): { -readonly [Name in 'hasLeft']: Exchange[Name] } & Exchange {
  return { activityIndex: -1, hasLeft: false, isHttp2: false, req: { socket: {} }, res: {} } as never
}

describe('what is under way while a service drains', () => {
  it('is waited for while its client is there, and not for ever once all clients have left', async () => {
    const activity = createActivity(40)
    const [slow, hung] = [createExchange(), createExchange()]
    activity.begin(slow)
    activity.begin(hung)
    hung.hasLeft = true
    const drained = activity.drain().then(() => 'drained')
    expect(await Promise.race([drained, wait(200)])).toBe('waits')
    activity.end(slow)
    expect(await Promise.race([drained, wait(5000)])).toBe('drained')
    expect(await Promise.race([activity.drain().then(() => 'drained'), wait(5000)])).toBe('drained')
  })

  it('ends once every request has, in whatever order they end, each any number of times', async () => {
    const activity = createActivity()
    const exchanges = Array.from({ length: 5 }, createExchange)
    for (const exchange of exchanges) activity.begin(exchange)
    const drained = activity.drain().then(() => 'drained')
    for (const index of [1, 4, 1, 0, 3]) activity.end(exchanges[index]!)
    expect(await Promise.race([drained, wait(50)])).toBe('waits')
    activity.end(exchanges[2]!)
    expect(await Promise.race([drained, wait(5000)])).toBe('drained')
  })

  it('is waited for anew where a request comes whose client is there, by all who drain, and then by no timer', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const activity = createActivity(2000)
    const [hung, late] = [createExchange(), createExchange()]
    hung.hasLeft = true
    activity.begin(hung)
    const ended: string[] = []
    for (const name of ['first', 'second']) void activity.drain().then(() => ended.push(name))
    vi.advanceTimersByTime(1900)
    activity.begin(late)
    vi.advanceTimersByTime(100)
    late.hasLeft = true
    vi.advanceTimersByTime(2000)
    await wait(0)
    expect(ended).toEqual([])
    vi.advanceTimersByTime(100)
    await wait(0)
    expect([ended.sort(), vi.getTimerCount()]).toEqual([['first', 'second'], 0])
  })
})
