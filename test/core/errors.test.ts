import express from 'express'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { createProblem, HttpError, isHttpError, problemType, RequestAborted } from '../../src/core/errors.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { createErrorReply } from '../../src/core/failures.ts'
import { toHttpError } from '../../src/core/unavailable.ts'
import { serve } from '../handlers/serve.ts'
import { fieldOf } from '../support/reply-fields.ts'

const asking = (accept?: string) => ({ field: () => accept }) as unknown as Exchange

describe('HttpError', () => {
  it('has what Express and Koa look for', () => {
    const error = new HttpError(401, 'ERR_UNAUTHENTICATED', {
      detail: 'Who?',
      headers: { 'WWW-Authenticate': ['Basic', 'Bearer'] },
    })
    expect(error).toMatchObject({ name: 'HttpError', status: 401, statusCode: 401, expose: true, message: 'Who?' })
    expect({ ...error.headers }).toEqual({ 'WWW-Authenticate': ['Basic', 'Bearer'] })
    expect(new HttpError(503, 'ERR_UNAVAILABLE').expose).toBe(false)
    expect(new HttpError(404, 'ERR_NOT_FOUND').message).toBe('Not Found')
  })

  it('has a stack where the server is at fault, and leaves those of other errors as they are', () => {
    const { stackTraceLimit } = Error
    const stacks = [404, 500].map((status) => new HttpError(status, 'ERR_OF_YOUR_OWN').stack?.split('\n').length)
    expect(stacks[0]).toBe(1)
    expect(stacks[1]).toBeGreaterThan(1)
    expect(Error.stackTraceLimit).toBe(stackTraceLimit)
  })

  it('is known by its mark, not by its class: two copies of the package may meet', () => {
    const mark = Symbol.for('http-resource-service.HttpError')
    expect(isHttpError(new HttpError(404, 'ERR_NOT_FOUND'))).toBe(true)
    expect(isHttpError({ [mark]: true })).toBe(true)
    for (const value of [undefined, null, 404, new Error('x'), { status: 404 }, new RequestAborted()]) {
      expect(isHttpError(value)).toBe(false)
    }
  })

  it('chooses the answer of Express and of Koa', async () => {
    const headers = { 'X-Why': 'twice', 'WWW-Authenticate': ['Basic', 'Bearer'] }
    const fault = () => new HttpError(409, 'ERR_OF_YOUR_OWN', { headers })
    const app = express()
    app.use(() => {
      throw fault()
    })
    const koa = new Koa()
    koa.silent = true
    koa.use(() => {
      throw fault()
    })
    for (const listener of [app, koa.callback()]) {
      const answer = await (await serve(listener))('GET', '/')
      expect([answer.status, answer.field('x-why')]).toEqual([409, 'twice'])
      expect(answer.values('www-authenticate')).toEqual(['Basic', 'Bearer'])
    }
  })

  it('keeps a copy of the header fields that nothing changes', () => {
    const challenges = ['Basic']
    const { headers } = new HttpError(401, 'ERR_UNAUTHENTICATED', { headers: { 'WWW-Authenticate': challenges } })
    challenges.push('Digest')
    expect({ ...headers }).toEqual({ 'WWW-Authenticate': ['Basic'] })
    expect([Object.isFrozen(headers), Object.isFrozen(headers['WWW-Authenticate'])]).toEqual([true, true])
  })

  it.each([
    ['HttpError takes as header Retry-After: text, or a list of texts; it is the number 5.', { 'Retry-After': 5 }],
    ['HttpError takes as header A: text, or a list of texts; it is a list.', { A: [1] }],
    ["HttpError takes headers as an object: { 'Retry-After': '5' }, not a list.", ['Retry-After', '5']],
    ["HttpError takes headers as an object: { 'Retry-After': '5' }, not null.", null],
  ])('refuses header fields that could not be sent: %s', (message, headers) => {
    expect(() => new HttpError(503, 'ERR_UNAVAILABLE', { headers: headers as never })).toThrow(new TypeError(message))
  })
})

describe('options of an HttpError', () => {
  it.each(['type', 'title', 'status', 'detail', 'errors'])(
    'are refused where extensions has %s, which the problem document has of its own (RFC 9457 §3.2)',
    (name) => {
      const make = () => new HttpError(402, 'ERR_NO_CREDIT', { extensions: { balance: 5, [name]: 200 } })
      expect(make).toThrow(
        new TypeError(
          `HttpError takes as extensions: members beside type, title, status, detail, errors; it has ${name}.`,
        ),
      )
    },
  )

  it('may give a problem of its own kind a title of its own (RFC 9457 §3.1.3)', async () => {
    const type = 'https://shop.example/problems/no-credit'
    const given = { type, title: 'Not enough credit', detail: 'Your balance is 0.' }
    const error = new HttpError(402, 'ERR_NO_CREDIT', given)
    expect(error).toMatchObject({ title: 'Not enough credit', message: 'Your balance is 0.' })
    expect(createProblem(error)).toEqual({
      type,
      title: 'Not enough credit',
      status: 402,
      detail: 'Your balance is 0.',
    })
    expect(new HttpError(402, 'ERR_NO_CREDIT', { title: 'Not enough credit' }).message).toBe('Not enough credit')
  })

  it('has the phrase of the status as its title where there is none', () => {
    expect(new HttpError(402, 'ERR_NO_CREDIT').title).toBe('Payment Required')
    expect(new HttpError(599, 'ERR_OWN').title).toBe('Error')
  })

  it('sends a title only where the rest may be sent', () => {
    const given = { title: 'The secret is out' }
    expect(createProblem(new HttpError(503, 'ERR_OWN', given)).title).toBe('Service Unavailable')
    expect(createProblem(new HttpError(503, 'ERR_OWN', { ...given, expose: true })).title).toBe('The secret is out')
    expect(createProblem(new HttpError(402, 'ERR_OWN', { ...given, expose: false })).title).toBe('Payment Required')
  })

  it.each([
    ['', 'empty text'],
    [5, 'the number 5'],
    [null, 'null'],
  ])('refuses %j as a title', (title, name) => {
    const make = () => new HttpError(402, 'ERR_OWN', { title: title as string })
    expect(make).toThrow(new TypeError(`HttpError takes as title: text; it is ${name}.`))
  })

  it('may say which occurrence it is (RFC 9457 §3.1.5)', () => {
    const error = new HttpError(402, 'ERR_NO_CREDIT', { extensions: { instance: '/payments/5' } })
    expect(createProblem(error)).toMatchObject({ status: 402, instance: '/payments/5' })
  })

  it('are refused where they are inherited or a getter of a class: a copy would be without them', () => {
    class Options {
      get detail() {
        return 'why'
      }
    }
    const message = 'HttpError takes options as enumerable properties of the object itself; "detail" is not one.'
    for (const options of [new Options(), Object.create({ detail: 'why' })]) {
      expect(() => new HttpError(402, 'ERR_NO_CREDIT', options)).toThrow(new TypeError(message))
    }
  })

  it('count where they are getters of the object itself', () => {
    const options = {
      get detail() {
        return 'why'
      },
    }
    expect(new HttpError(402, 'ERR_NO_CREDIT', options).detail).toBe('why')
  })
})

describe('createProblem', () => {
  it('lets no member take the place of the status, the title or the type (RFC 9457 §3.2)', () => {
    const error = new HttpError(402, 'ERR_NO_CREDIT', { detail: 'why' })
    // As one of an older copy of this package may have them.
    const other = Object.assign(Object.create(error), {
      title: undefined,
      extensions: { status: 200, title: 'OK', detail: 5, more: 1 },
    })
    const problem = createProblem(other)
    expect(problem).toMatchObject({ status: 402, title: 'Payment Required', detail: 'why', more: 1 })
    expect(Object.keys(problem)).toEqual(['type', 'title', 'status', 'detail', 'more'])
  })

  it('tells what helps (RFC 9457 §3)', () => {
    const error = new HttpError(422, 'ERR_INVALID_CONTENT', {
      detail: 'One member is wrong.',
      errors: [{ pointer: '/a', detail: 'is missing' }],
      extensions: { retry: false },
    })
    expect(createProblem(error)).toEqual({
      type: 'urn:problem-type:http-resource-service:invalid-content',
      title: 'Unprocessable Entity',
      status: 422,
      detail: 'One member is wrong.',
      errors: [{ pointer: '/a', detail: 'is missing' }],
      retry: false,
    })
    expect(problemType('ERR_NOT_FOUND')).toBe('urn:problem-type:http-resource-service:not-found')
  })

  it('tells nothing of a failure within (threat 124)', () => {
    const error = new HttpError(500, 'ERR_INTERNAL', { detail: 'secret', extensions: { secret: 1 } })
    expect(Object.keys(createProblem(error))).toEqual(['type', 'title', 'status'])
  })
})

describe('createErrorReply', () => {
  it('sends each challenge in a field line of its own (RFC 9110 §11.6.1)', () => {
    const headers = { 'WWW-Authenticate': ['Basic', 'Bearer'] }
    const reply = createErrorReply(new HttpError(401, 'ERR_UNAUTHENTICATED', { headers }), asking())
    expect(reply.headers.slice(-8, -2)).toEqual([
      ...['WWW-Authenticate', 'Basic', 'WWW-Authenticate', 'Bearer'],
      ...['Cache-Control', 'no-store'],
    ])
  })

  const error = new HttpError(404, 'ERR_NOT_FOUND', { detail: 'Nothing is here.' })

  it.each([
    [undefined, 'application/problem+json'],
    ['*/*', 'application/problem+json'],
    ['application/json', 'application/problem+json'],
    ['image/png', 'application/problem+json'],
    ['text/plain', 'text/plain; charset=utf-8'],
    ['text/html, text/plain;q=0.5', 'text/plain; charset=utf-8'],
    [';;;', 'application/problem+json'],
  ])('answers Accept %j with %s', (accept, type) => {
    const reply = createErrorReply(error, asking(accept))
    expect([reply.status, fieldOf(reply, 'content-type'), fieldOf(reply, 'cache-control')]).toEqual([
      404,
      type,
      'no-store',
    ])
    expect(String(reply.body)).toContain('Nothing is here.')
  })

  it.each([undefined, 'text/plain'])('keeps the detail of a 5xx to itself, for Accept %j', (accept) => {
    const failure = (expose: boolean) => new HttpError(503, 'ERR_UNAVAILABLE', { detail: 'db7 is down.', expose })
    expect(String(createErrorReply(failure(false), asking(accept)).body)).not.toContain('db7')
    expect(String(createErrorReply(failure(true), asking(accept)).body)).toContain('db7 is down.')
  })

  it('answers 412 with nothing (interface Errors, row H118)', () => {
    const reply = createErrorReply(new HttpError(412, 'ERR_PRECONDITION_FAILED', { detail: 'x' }), asking())
    expect([reply.body, fieldOf(reply, 'content-length'), fieldOf(reply, 'content-type')]).toEqual([
      undefined,
      '0',
      undefined,
    ])
  })
})

describe('toHttpError', () => {
  it.each([
    ['ENOSPC', 507],
    ['EDQUOT', 507],
    ['EFBIG', 507],
    ['SQLITE_FULL', 507],
    ['EMFILE', 503],
    ['ENFILE', 503],
    ['ENOENT', 500],
    ['EACCES', 500],
  ])('takes %s for %i (threat 140)', (code, status) => {
    const cause = Object.assign(new Error('at /secret'), { code })
    expect(toHttpError(cause)).toMatchObject({ status, expose: false, cause })
  })

  it.each([-122, -69])('takes EDQUOT, for which Node has no name, for 507: errno %i', (errno) => {
    expect(toHttpError(Object.assign(new Error('full'), { errno, code: `Unknown system error ${errno}` })).status).toBe(
      507,
    )
  })

  it.each([undefined, null, 'text', 7, {}])('takes %j, thrown, for 500', (value) => {
    expect(toHttpError(value)).toMatchObject({ status: 500, code: 'ERR_INTERNAL' })
  })

  it('leaves an HttpError as it is', () => {
    const error = new HttpError(404, 'ERR_NOT_FOUND')
    expect(toHttpError(error)).toBe(error)
  })
})
