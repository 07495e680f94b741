import { createServer } from 'node:http'
import express from 'express'
import { describe, expect, it, vi } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { openapi } from '../../src/openapi.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer } from '../support/hosts.ts'

const info = { title: 'Users', version: '1.0.0' }
const OPTIONS: ServiceOptions = {
  resources: { '/users': collection() },
  openapi: { path: '/openapi.json', info },
}

describe('the option openapi', () => {
  it('serves the document that openapi() makes (issue 21)', async () => {
    const { send } = await serve(memoryStore(), OPTIONS)
    const answer = await send('GET', '/openapi.json')
    expect(answer.status).toBe(200)
    expect(answer.field('Content-Type')).toBe('application/json')
    const service = createResourceService(memoryStore(), OPTIONS)
    expect(JSON.parse(answer.text)).toEqual(openapi(service, { info }))
  })

  it('serves it with a tag that stays the same, 304, HEAD and ranges (issue 21)', async () => {
    const { send } = await serve(memoryStore(), OPTIONS)
    const first = await send('GET', '/openapi.json')
    const tag = first.field('ETag')!
    expect((await send('GET', '/openapi.json', [`If-None-Match: ${tag}`])).status).toBe(304)
    const head = await send('HEAD', '/openapi.json')
    expect([head.status, head.field('Content-Length'), head.text]).toEqual([200, String(first.body.length), ''])
    expect((await send('GET', '/openapi.json', ['Range: bytes=0-9'])).text).toBe(first.text.slice(0, 10))
    const other = await serve(memoryStore(), OPTIONS)
    expect((await other.send('GET', '/openapi.json')).field('ETag')).toBe(tag)
  })

  it('serves it under the rules of every other resource: CORS, methods, credentials (issue 21)', async () => {
    const { send } = await serve(memoryStore(), {
      ...OPTIONS,
      cors: { origins: 'https://app.example' },
      auth: { schemes: [basic({ accounts: { ada: 'lovelace' } })] },
    })
    const origin = 'Origin: https://app.example'
    const refused = await send('GET', '/openapi.json', [origin])
    expect([refused.status, refused.field('Access-Control-Allow-Origin')]).toEqual([401, 'https://app.example'])
    const credentials = `Authorization: Basic ${btoa('ada:lovelace')}`
    expect((await send('GET', '/openapi.json', [credentials])).status).toBe(200)
    expect((await send('PUT', '/openapi.json', [credentials], '{}')).field('Allow')).toBe('GET, HEAD, OPTIONS')
    const hidden = await serve(memoryStore(), {
      ...OPTIONS,
      auth: {
        schemes: [basic({ accounts: { ada: 'lovelace' } })],
        requireAuth: () => false,
        authorize: () => 'not-found',
      },
    })
    expect((await hidden.send('GET', '/openapi.json')).status).toBe(404)
  })

  it('serves it byte for byte where `servers` is given', async () => {
    const servers = [{ url: 'https://api.example' }]
    const options = { ...OPTIONS, openapi: { path: '/openapi.json', info, servers } }
    const { send } = await serve(memoryStore(), options)
    const written = JSON.stringify(openapi(createResourceService(memoryStore(), options), { info, servers }))
    expect((await send('GET', '/openapi.json')).text).toBe(written)
  })

  it('names in servers the mount that it is asked for at', async () => {
    const service = createResourceService(memoryStore(), OPTIONS)
    const app = express()
    app.use('/api', service)
    app.use('/v2', service)
    const host = await runServer(createServer(app))
    closeAfterTest(() => host.close())
    for (const mount of ['/api', '/v2', '/api']) {
      const { body } = await host.send({ path: `${mount}/openapi.json` })
      expect(JSON.parse(body.toString()).servers).toEqual([{ url: mount }])
    }
  })

  it('is written once, however many mounts clients choose below a parameter, and each has a tag of its own', async () => {
    const host = await runServer(createServer(mount('/t/:tenant', createResourceService(memoryStore(), OPTIONS))))
    closeAfterTest(() => host.close())
    const stringify = vi.spyOn(JSON, 'stringify')
    try {
      const tags: (string | undefined)[] = []
      for (const tenant of ['a', 'b', 'a', 'c'])
        tags.push((await host.send({ path: `/t/${tenant}/openapi.json` })).field('etag'))
      expect(tags[2]).toBe(tags[0])
      expect(new Set(tags).size).toBe(3)
      expect(stringify.mock.calls.filter(([value]) => value?.paths !== undefined)).toHaveLength(1)
    } finally {
      stringify.mockRestore()
    }
  })

  it('is made anew by the next request after it could not be made', async () => {
    let failures = 0
    const jsonSchema = {
      get type() {
        if (failures === 0) return 'object'
        failures--
        throw new Error('not now')
      },
    }
    const { send } = await serve(memoryStore(), {
      ...OPTIONS,
      resources: { '/users': collection({ jsonSchema }) },
      onError: () => {},
    })
    failures = 1
    expect((await send('GET', '/openapi.json')).status).toBe(500)
    expect(failures).toBe(0)
    expect((await send('GET', '/openapi.json')).status).toBe(200)
  })

  it('takes a path alone, and serves a service without definitions as well', async () => {
    const { send } = await serve(memoryStore(), { openapi: '/api-description' })
    const document = JSON.parse((await send('GET', '/api-description')).text)
    expect(Object.keys(document.paths)).toEqual(['/api-description', '/{path}'])
    expect(document.info).toEqual({ title: 'Resources', version: '0.0.0' })
    expect((await send('GET', '/other')).status).toBe(404)
  })

  it('describes every version that it is asked for', async () => {
    const { send } = await serve(memoryStore(), { ...OPTIONS, openapi: { path: '/o.json', info, version: '3.2' } })
    expect(JSON.parse((await send('GET', '/o.json')).text).openapi).toBe('3.2.0')
  })

  it.each([
    ['a path without a slash', { openapi: 'openapi.json' }],
    ['a path with a name', { openapi: '/{openapi}' }],
    ['no path', { openapi: { info } }],
    ['an option that does not exist', { openapi: { path: '/o', title: 'x' } }],
    ['a path that a definition has', { openapi: '/users' }],
  ])('refuses %s', (_, options) => {
    expect(() => createResourceService(memoryStore(), { ...OPTIONS, ...options } as ServiceOptions)).toThrow(TypeError)
  })
})

describe('openapi', () => {
  it.each([
    ['another function than a service', () => openapi((() => {}) as never, { info })],
    ['a missing info', () => openapi(createResourceService(memoryStore(), OPTIONS), {} as never)],
    [
      'a version that there is not',
      () => openapi(createResourceService(memoryStore(), OPTIONS), { info, version: '3.0' as never }),
    ],
    [
      'an option that does not exist',
      () => openapi(createResourceService(memoryStore(), OPTIONS), { info, title: 'x' } as never),
    ],
  ])('refuses %s', (_, call) => {
    expect(call).toThrow(TypeError)
  })
})
