import { describe, expect, it } from 'vitest'
import { completeReply } from '../../src/core/complete-reply.ts'

describe('completeReply', () => {
  it.each([204, 304])('sends neither length nor content with %d (RFC 9110 §8.6)', (status) => {
    expect(completeReply({ status, headers: ['X-Why', 'gone'], body: 'gone' })).toEqual({
      status,
      headers: ['X-Why', 'gone'],
    })
  })
})
