import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { auth } from '../../src/handlers/auth.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { runListener } from '../support/hosts.ts'
import { serve } from './serve.ts'

const json = 'Content-Type: application/json'
const ada = `Authorization: Basic ${btoa('ada:ada')}`
const bob = `Authorization: Basic ${btoa('bob:bob')}`
const schemes = [basic({ realm: 'test', accounts: { ada: 'ada', bob: 'bob' } })]
const isGet = ({ method }: RequestView): boolean => method === 'GET'

describe('HEAD (RFC 9110 §9.3.2)', () => {
  it('has the status of GET where authorize, requireAuth or scope decides by the method', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/shown': collection({ authorize: (principal, request) => isGet(request) || principal?.id === 'ada' }),
        '/hidden': collection({ authorize: (principal, request) => !isGet(request) || principal?.id === 'ada' }),
        '/open': collection({ requireAuth: (request) => !isGet(request) }),
        '/closed': collection({ requireAuth: isGet }),
        '/scoped': collection({
          scope: (request) => (isGet(request) ? undefined : { owner: request.principal!.id }),
        }),
      },
      auth: { schemes, requireAuth: () => false },
    })
    for (const [path, fields, status] of [
      ['/shown', [bob], 200],
      ['/hidden', [bob], 403],
      ['/open', [], 200],
      ['/closed', [], 401],
      ['/scoped', [bob], 200],
    ] as const) {
      expect((await send('POST', path, [json, ada], '{}')).status).toBe(201)
      const [got, head] = [await send('GET', `${path}/1`, fields), await send('HEAD', `${path}/1`, fields)]
      expect([path, got.status, head.status]).toEqual([path, status, status])
    }
  })

  it('needs the scopes that a GET needs (RFC 6750 §3.1)', async () => {
    const scheme = bearer((token) => ({ id: 'ada', claims: { scope: token } }), {
      scope: (request) => [isGet(request) ? 'read' : 'write'],
    })
    const { send } = await serve(memoryStore(), { auth: { schemes: [scheme] } })
    expect((await send('PUT', '/a', ['Content-Type: text/plain', 'Authorization: Bearer write'], 'a')).status).toBe(201)
    expect((await send('HEAD', '/a', ['Authorization: Bearer read'])).status).toBe(200)
    expect((await send('HEAD', '/a', ['Authorization: Bearer write'])).status).toBe(403)
  })

  it('passes the standalone auth where a GET passes', async () => {
    const guard = auth({ schemes, requireAuth: 'writes', authorize: (_, request) => isGet(request) })
    const host = await runListener((req, res) => guard(req, res, () => res.end()))
    try {
      expect((await host.send({ method: 'HEAD', path: '/' })).status).toBe(200)
    } finally {
      await host.close()
    }
  })
})
