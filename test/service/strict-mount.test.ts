import { createServer } from 'node:http'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { collection, createResourceService, memoryStore } from '../../src/index.ts'
import { runServer } from '../support/hosts.ts'

describe('strictMount', () => {
  it.each([
    ['/api/users', 200, 200],
    ['/API/users', 200, 404],
  ])('decides whether a mount path may be spelled otherwise (threat 34): %s', async (path, loose, strict) => {
    for (const [strictMount, status] of [
      [false, loose],
      [true, strict],
    ] as const) {
      const service = createResourceService(memoryStore(), {
        resources: { '/users': collection() },
        mountPath: '/api',
        strictMount,
      })
      const app = express()
      app.use('/api', service as unknown as express.RequestHandler)
      const host = await runServer(createServer(app))
      expect((await host.send({ path })).status).toBe(status)
      await host.close()
    }
  })

  it('needs a mount path to compare with', () => {
    expect(() => createResourceService(memoryStore(), { strictMount: true })).toThrow('mountPath')
  })
})
