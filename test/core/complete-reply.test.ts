import { describe, expect, it } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import { completeReply } from '../../src/core/failures.ts'

describe('completeReply', () => {
  it.each([204, 304])('sends neither length nor content with %d (RFC 9110 §8.6)', (status) => {
    expect(
      completeReply({ status, headers: ['X-Why', 'gone'], body: 'gone' }, new HttpError(404, 'ERR_NOT_FOUND')),
    ).toEqual({
      status,
      headers: ['X-Why', 'gone', 'Cache-Control', 'no-store'],
    })
  })

  it('keeps the fields of the error that the reply does not have, under the status of the error', () => {
    const headers = {
      'WWW-Authenticate': ['Basic', 'Bearer'],
      'Content-Type': 'a/b',
      'Content-Length': '9',
      'X-Own': 'a',
    }
    const error = new HttpError(401, 'ERR_UNAUTHENTICATED', { headers })
    expect(completeReply({ status: 401, headers: ['x-own', 'b'], body: 'ü' }, error).headers).toEqual([
      ...['x-own', 'b', 'WWW-Authenticate', 'Basic', 'WWW-Authenticate', 'Bearer', 'Content-Type', 'a/b'],
      ...['Cache-Control', 'no-store', 'Content-Length', '2'],
    ])
    expect(completeReply({ status: 403, headers: [] }, error).headers).not.toContain('WWW-Authenticate')
  })

  it('leaves Cache-Control as the function gives it, and the field that every answer has to the writer', () => {
    const headers = ['cache-control', 'max-age=5', 'x-content-type-options', 'nosniff']
    const reply = completeReply({ status: 404, headers, body: '' }, new HttpError(404, 'ERR_NOT_FOUND'))
    expect(reply.headers).toEqual(['cache-control', 'max-age=5', 'Content-Length', '0'])
  })
})
