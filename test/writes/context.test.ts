import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { ask } from '../support/ask.ts'
import { runServer } from '../support/hosts.ts'
import type { Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

describe('AsyncLocalStorage', () => {
  it('is that of the request in schemas, hooks and stores, also after the content was read', async () => {
    const context = new AsyncLocalStorage<string>()
    const inner = memoryStore()
    const seen: (string | undefined)[] = []
    const store: ResourceStore = {
      ...inner,
      write(...request) {
        seen.push(context.getStore())
        return inner.write(...request)
      },
      create(...request) {
        seen.push(context.getStore())
        return inner.create(...request)
      },
    }
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          seen.push(context.getStore())
          return { value: value as { a: number } }
        },
      },
    }
    const service = createResourceService(store, {
      resources: { '/items': collection({ schema }), '/raw/{name}': document(), '/one': singleton() },
    })
    const host = await runServer(
      createServer((req, res) => context.run(String(req.headers['x-tenant']), () => service(req, res))),
    )
    try {
      const send = (method: string, path: string, type: string, body: string) =>
        ask(host.port, { method, target: path, fields: ['X-Tenant: t1', `Content-Type: ${type}`], body })
      const multipart = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n'
      const answers = [
        await send('POST', '/items', 'application/json', '{"a":1}'),
        await send('POST', '/items', 'application/x-www-form-urlencoded', 'a=1'),
        await send('POST', '/items', 'multipart/form-data; boundary=b', multipart),
        await send('PUT', '/items/1', 'application/json', '{"a":2}'),
        await send('PATCH', '/items/1', 'application/merge-patch+json', '{"a":3}'),
        await send('PUT', '/raw/x', 'text/plain', 'text'),
        await send('PUT', '/one', 'application/json', '{}'),
      ]
      expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201, 204, 200, 201, 201])
      expect(seen.length).toBeGreaterThan(10)
      expect(new Set(seen)).toEqual(new Set(['t1']))
    } finally {
      await host.close()
    }
  })

  it('is that of no request in accepted work, nor where records of answers are swept', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: [string, string | undefined][] = []
    const see = (name: string): void => void seen.push([name, context.getStore()])
    const inner = memoryStore()
    const store: ResourceStore = {
      ...inner,
      list(path, options) {
        if (path === 'idempotency') see('swept')
        return inner.list(path, options)
      },
    }
    const jobs = collection({
      create: 'accepted',
      idempotency: 'optional',
      process: () => see('processed'),
      afterCommit: ({ kind }) => kind === 'patched' && see('committed'),
    })
    const service = createResourceService(store, { resources: { '/jobs': jobs } })
    const host = await runServer(
      createServer((req, res) => context.run(String(req.headers['x-tenant']), () => service(req, res))),
    )
    try {
      const fields = (tenant: number) => [`X-Tenant: t${tenant}`, 'Content-Type: application/json']
      const post = (tenant: number) =>
        ask(host.port, { method: 'POST', target: '/jobs', fields: fields(tenant), body: '{}' })
      await Promise.all([1, 2, 3].map(post))
      await vi.waitFor(() => expect(seen).toHaveLength(7), 30_000)
      expect(seen.map(([, tenant]) => tenant)).toEqual(seen.map(() => undefined))
    } finally {
      await host.close()
      await service.close()
    }
  })
})
