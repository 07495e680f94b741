import { afterAll, describe, expect, it } from 'vitest'
import { collection, createResourceService, memoryStore } from '../../src/index.ts'
import { startHost } from '../support/hosts.ts'

describe('cors with methodOverride and contentCodings', () => {
  const started = startHost(
    'plain',
    createResourceService(memoryStore(), {
      resources: { '/users': collection() },
      cors: { origins: ['https://app.example'] },
      methodOverride: true,
      contentCodings: ['gzip'],
    }),
  )
  afterAll(async () => (await started).close())

  it('lets scripts name the field that stands for the method, and the coding (Fetch, "CORS protocol")', async () => {
    const { status, headers } = await (await started).send({
      method: 'OPTIONS',
      path: '/users/1',
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'content-encoding,x-http-method-override',
      },
    })
    expect(status).toBe(204)
    expect(headers['access-control-allow-headers']).toContain('X-HTTP-Method-Override')
    expect(headers['access-control-allow-headers']).toContain('Content-Encoding')
  })
})
