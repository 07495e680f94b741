import { expect, it, vi } from 'vitest'
import { createPoll } from '../../src/service/work-scheduler.ts'

it('a poll with the longest interval of a timer does not look again at once', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(1)
  const look = vi.fn(async () => undefined)
  const poll = createPoll(look, 2 ** 31 - 1)
  poll.start()
  await vi.waitFor(() => expect(look).toHaveBeenCalled())
  await new Promise((resolve) => setTimeout(resolve, 50))
  poll.close()
  vi.restoreAllMocks()
  expect(look).toHaveBeenCalledTimes(1)
})
