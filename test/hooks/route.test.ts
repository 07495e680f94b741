import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FailureEvent, RequestEvent } from '../../src/index.ts'
import { collection, singleton } from '../../src/service/resource-definitions.ts'
import { jsonOf, startService, type Target, waitFor } from '../writes/support.ts'

let target: Target | undefined
let requests: RequestEvent[]
let failures: FailureEvent[]
const onRequest = (event: unknown): void => void requests.push(event as RequestEvent)
const onFailure = (event: unknown): void => void failures.push(event as FailureEvent)

beforeEach(() => {
  requests = []
  failures = []
  subscribe('http-resource-service:request', onRequest)
  subscribe('http-resource-service:failure', onFailure)
})
afterEach(async () => {
  unsubscribe('http-resource-service:request', onRequest)
  unsubscribe('http-resource-service:failure', onFailure)
  await target?.close()
})

describe('the route in the messages of the channels', () => {
  it('is the pattern of the definition, and undefined where there is none', async () => {
    const resources = {
      '/tasks': collection({ files: { photo: {} } }),
      '/tasks/{task}/comments': collection(),
      '/config': singleton({ aliases: ['/settings'] }),
    }
    target = await startService({ resources })
    const paths = ['/tasks', '/tasks/7', '/tasks/7/photo', '/tasks/7/comments/1', '/settings', '/other']
    for (const path of paths) await target.send('GET', path)
    expect(requests.map(({ route }) => route)).toEqual([
      ...['/tasks', '/tasks/{id}', '/tasks/{id}/photo', '/tasks/{task}/comments/{id}', '/config', undefined],
    ])
  })

  it('is undefined in a service without definitions', async () => {
    target = await startService()
    await target.send('GET', '/a')
    expect(requests.map(({ route }) => route)).toEqual([undefined])
  })

  it('is in failures of requests, of afterCommit, and of accepted work', async () => {
    const fail = (): never => {
      throw new Error('out of order')
    }
    const resources = {
      '/a': collection({ beforeWrite: fail }),
      '/b': collection({ afterCommit: fail }),
      '/c': collection({ create: 'accepted', process: fail }),
    }
    const onError = () => undefined
    target = await startService({ resources, onError, operations: { maxAttempts: 1 } })
    await target.send('PUT', '/a/1', jsonOf({}))
    await target.send('PUT', '/b/1', jsonOf({}))
    await target.send('POST', '/c', jsonOf({}))
    await waitFor(
      () => target!.send('GET', '/c/1'),
      (answer) => answer.json().state === 'failed',
    )
    expect(failures.map(({ stage, route }) => [stage, route])).toEqual([
      ['request', '/a/{id}'],
      ['committed', '/b/{id}'],
      ['background', '/c'],
    ])
  })
})
