import { createServer } from 'node:http'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { listen, send } from '../adapters/raw.ts'

const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
const guard = (): Handler => auth({ schemes })
const guardOfSecret = (): Handler => auth({ schemes, requireAuth: ({ path }) => path.startsWith('/secret') })

/** Everything that the guard lets go on is answered 200. */
async function ask(guard: Handler, targets: readonly string[], mountPath?: string): Promise<readonly string[]> {
  const app = express()
  if (mountPath === undefined) app.use(guard)
  else app.use(mountPath, guard)
  app.use((_req, res) => void res.send('reached'))
  const port = await listen(createServer(app))
  const statuses: string[] = []
  for (const target of targets) {
    statuses.push(`${(await send(port, { method: 'GET', target })).status} ${target}`)
  }
  return statuses
}

describe('a guard whose prefix is below another mount', () => {
  const targets = [
    '/api/secret',
    '/api/../api/secret',
    '/api/x/../../api/secret',
    '/api/%2e%2e/api/secret',
    '/api/..%5capi/secret',
    '/api/..;/api/secret',
  ]

  it('does not pass on what dots lead out of the outer mount and back', async () => {
    const [first, ...others] = targets.map((target, index) => `${index === 0 ? 401 : 400} ${target}`)
    expect(await ask(mount('/api', mount('/secret', guard())), targets)).toEqual([first, ...others])
    expect(await ask(mount('/secret', guard()), targets, '/api')).toEqual([first, ...others])
    expect(await ask(mount('/:version', mount('/secret', guard())), ['/v1/../v2/secret'])).toEqual([
      '400 /v1/../v2/secret',
    ])
    expect(await ask(mount('/api', mount('/secret', guard())), ['/api/x/../y'])).toEqual(['200 /api/x/../y'])
  })

  it('refuses them where it asks about the path below its mount', async () => {
    const expected = targets.map((target, index) => `${index === 0 ? 401 : 400} ${target}`)
    expect(await ask(mount('/api', guardOfSecret()), targets)).toEqual(expected)
    expect(await ask(guardOfSecret(), targets, '/api')).toEqual(expected)
  })
})

describe('a guard before a proxy that changes the path', () => {
  it('refuses what dots lead out of the part that the proxy strips (RFC 3986 §5.2.4)', async () => {
    const targets = ['/v1/../secret', '/v1/..%2fsecret', '/v1/x/../../secret', '/v1/\\host/secret', '/v1/../other']
    expect(await ask(mount('/v1/secret', guard()), targets)).toEqual([
      '400 /v1/../secret',
      '400 /v1/..%2fsecret',
      '400 /v1/x/../../secret',
      '400 /v1/\\host/secret',
      '200 /v1/../other',
    ])
  })

  it('refuses what dots lead out of the root, to the path that the proxy adds', async () => {
    const targets = ['/../v1/secret', '/%2e%2e/v1/secret', '/x/../y']
    const expected = ['400 /../v1/secret', '400 /%2e%2e/v1/secret', '200 /x/../y']
    expect(await ask(mount('/secret', guard()), targets)).toEqual(expected)
    expect(await ask(guardOfSecret(), targets)).toEqual(expected)
    // Also where dots stand between the parts of the prefix.
    expect(await ask(mount('/a/b', guard()), ['/../v1/a/./b', '/../v1/a/x/../b', '/../v1/a/c', '/a/c'])).toEqual([
      ...['400 /../v1/a/./b', '400 /../v1/a/x/../b', '200 /../v1/a/c', '200 /a/c'],
    ])
  })
})

describe('a guard below a prefix with a name', () => {
  it('takes an escaped slash for a part of the segment, as routers do', async () => {
    const targets = ['/a%2fb/secret', '/a%5Cb/secret', '/a%252fb/secret/x', '/x/a%2fb/secret']
    expect(await ask(mount('/:tenant/secret', guard()), targets)).toEqual([
      '400 /a%2fb/secret',
      '400 /a%5Cb/secret',
      '401 /a%252fb/secret/x',
      '200 /x/a%2fb/secret',
    ])
  })
})

describe('a guard that asks about paths', () => {
  it('asks about readings that are left after one decoding', async () => {
    const targets = ['/%2573ecret', '/x/..;/secret', '/x/.;a=b/../secret', '/secret;a=b', '/public;a=b', '/100%25']
    expect(await ask(guardOfSecret(), targets)).toEqual([
      '401 /%2573ecret',
      '401 /x/..;/secret',
      '401 /x/.;a=b/../secret',
      '401 /secret;a=b',
      '200 /public;a=b',
      '200 /100%25',
    ])
  })

  it('resolves escaped dots where an escaped slash is before them, and refuses what has no path (URL Standard, "path state")', async () => {
    expect(await ask(guardOfSecret(), ['/x%2fy/%2e%2e/secret', '/x%2fy/%2e%2e/public', '*/secret', '*secret'])).toEqual(
      ['401 /x%2fy/%2e%2e/secret', '200 /x%2fy/%2e%2e/public', '400 */secret', '400 *secret'],
    )
  })

  it('hides what authorize hides in one reading, whatever it says of the others', async () => {
    const hiding = auth({ schemes, requireAuth: 'none', authorize: (_, { path }) => path === '/public' || 'not-found' })
    const targets = ['/public', '/x/..;/public', '/public;a=b', '/%2570ublic']
    expect(await ask(hiding, targets)).toEqual([
      '200 /public',
      '404 /x/..;/public',
      '404 /public;a=b',
      '404 /%2570ublic',
    ])
  })
})
