import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import express from 'express'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { auth, basic } from '../../src/auth.ts'
import type { FailureEvent, RequestEvent } from '../../src/core/diagnostics.ts'
import { HttpError } from '../../src/core/errors.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { range } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../handlers/serve.ts'

const undo: (() => void)[] = []
afterEach(() => {
  for (const stop of undo.splice(0)) stop()
})

function record<Event>(channel: string): Event[] {
  const events: Event[] = []
  const onEvent = (event: unknown): void => void events.push(event as Event)
  subscribe(channel, onEvent)
  undo.push(() => unsubscribe(channel, onEvent))
  return events
}

describe('the channel http-resource-service:request', () => {
  it('has the mount in its target, as the client sent it', async () => {
    const events = record<RequestEvent>('http-resource-service:request')
    const send = await serve(
      express().use(
        '/api',
        range(() => ({ contentType: 'text/plain', content: 'a' })),
      ),
    )
    await send('GET', '/api/a?token=secret')
    expect(events.map(({ target }) => target)).toEqual(['/api/a'])
  })

  it('says why an answer is what it is, and never what the query was (threat 36)', async () => {
    const events = record<RequestEvent>('http-resource-service:request')
    const send = await serve(conditional(() => ({ entityTag: '"e"' })))
    await send('PUT', '/a?token=secret', { 'If-Match': '"x"' })
    await send('GET', '/a', { 'If-None-Match': '"e"' })
    expect(events.map(({ method, target, status, reason }) => ({ method, target, status, reason }))).toEqual([
      { method: 'PUT', target: '/a', status: 412, reason: 'If-Match failed' },
      { method: 'GET', target: '/a', status: 304, reason: 'If-None-Match not-modified' },
    ])
    for (const { duration } of events) expect(duration).toBeGreaterThanOrEqual(0)
  })

  it.each([
    ['returns false', () => false],
    [
      'throws',
      () => {
        throw new HttpError(403, 'ERR_FORBIDDEN')
      },
    ],
  ])('has the target as sent where a guard %s for another reading of it', async (_, refuse) => {
    const events = record<RequestEvent>('http-resource-service:request')
    const schemes = [basic({ accounts: { ada: 'secret' } })]
    const send = await serve(
      auth({ schemes, requireAuth: 'none', authorize: (_, { path }) => path !== '/b' || refuse() }),
    )
    expect((await send('GET', '/a/..%2fb')).status).toBe(403)
    expect(events.map(({ target }) => target)).toEqual(['/a/..%2fb'])
  })

  it('says where the faults of content are, those of all of it too', async () => {
    const events = record<RequestEvent>('http-resource-service:request')
    const schema = z.object({ a: z.string() }).superRefine((_, context) => {
      context.addIssue({ code: 'custom', message: 'is too old' })
      context.addIssue({ code: 'custom', message: 'is too high', path: ['a'] })
    })
    const resources = { '/a': collection({ schema: schema as never }) }
    const send = await serve(createResourceService(memoryStore(), { resources }))
    const answer = await send('POST', '/a', { 'Content-Type': 'application/json' }, '{"a":"x"}')
    expect(answer.status).toBe(422)
    expect(events[0]!.reason).toMatch(/; content is too old; \/a is too high$/)
  })
})

describe('the channel http-resource-service:failure', () => {
  it('tells of content that failed after the head had left', async () => {
    const events = record<FailureEvent>('http-resource-service:failure')
    const content = {
      size: 10,
      async *open() {
        yield Buffer.from('half ')
        throw new Error('disk gone')
      },
    }
    const silenced = console.error
    console.error = () => {}
    try {
      const send = await serve(range(() => ({ contentType: 'text/plain', content })))
      await expect(send('GET', '/')).rejects.toThrow('aborted')
    } finally {
      console.error = silenced
    }
    expect(events.map(({ stage, error }) => [stage, (error as Error).message])).toEqual([['late', 'disk gone']])
  })
})
