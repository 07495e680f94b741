import { channel } from 'node:diagnostics_channel'
import { afterAll, expect } from 'vitest'

// Test files share processes, and a service that somebody listens to reads states that it need not read otherwise.
afterAll(() => {
  const names = ['http-resource-service:request', 'http-resource-service:failure']
  expect(names.filter((name) => channel(name).hasSubscribers)).toEqual([])
})
