import { createServer } from 'node:http'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer } from '../support/hosts.ts'
import { senderTo } from './serve.ts'

const text = 'Content-Type: text/plain'

describe('Koa', () => {
  const serveOnKoa = async (store: ResourceStore, before?: Koa.Middleware, options = {}) => {
    const app = new Koa()
    app.silent = true
    if (before !== undefined) app.use(before)
    app.use(koaMiddleware(createResourceService(store, options)))
    const host = await runServer(createServer(app.callback()))
    closeAfterTest(() => host.close())
    return { port: host.port, send: senderTo(host.port) }
  }

  it('gives HEAD the length of what the store need not have read (row H23)', async () => {
    const inner = memoryStore()
    await inner.write('/x', { contentType: 'text/plain', body: 'hello' }, { expect: 'any' })
    const store: ResourceStore = {
      ...inner,
      async read(path, options) {
        const state = await inner.read(path, options)
        return options?.metadataOnly === true && state !== undefined && !('removed' in state)
          ? { ...state, body: '' }
          : state
      },
    }
    const { send } = await serveOnKoa(store)
    expect((await send('HEAD', '/x')).field('Content-Length')).toBe('5')
  })

  it('sends nothing of a body that another middleware had meant to send (rows H22, H24)', async () => {
    const { send } = await serveOnKoa(memoryStore(), async (context, next) => {
      context.body = 'default answer'
      await next()
    })
    await send('PUT', '/x', [text], 'hello')
    for (const [answer, status, length] of [
      [await send('GET', '/x', [text, 'If-None-Match: *'], 'unread'), 304, undefined],
      [await send('PUT', '/x', [text, 'If-Match: "n"'], 'unread'), 412, '0'],
      [await send('DELETE', '/x', [text], 'unread'), 204, undefined],
    ] as const) {
      const fields = [answer.field('Content-Type'), answer.field('Content-Length')]
      expect([answer.status, ...fields]).toEqual([status, undefined, length])
    }
  })
})
