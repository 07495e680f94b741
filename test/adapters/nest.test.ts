import 'reflect-metadata'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { All, type CanActivate, Controller, Module, Next, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { listen, send } from './raw.ts'

const createService = () => createResourceService(memoryStore(), { resources: { '/users': collection() } })

/** What the documentation shows with decorators. */
function createController(): new () => object {
  class ApiController {
    readonly #service = mount('/api', createService())

    serve(req: IncomingMessage, res: ServerResponse, next: () => void): void {
      this.#service(req, res, next)
    }
  }
  const { prototype } = ApiController
  for (const [index, decorate] of [Req(), Res(), Next()].entries()) decorate(prototype, 'serve', index)
  All(['', '*path'])(prototype, 'serve', Object.getOwnPropertyDescriptor(prototype, 'serve')!)
  Controller('api')(ApiController)
  return ApiController
}

describe('a service in a controller of Nest', () => {
  it('runs behind the global guards, with content parsed or as it comes', async () => {
    for (const bodyParser of [true, false]) {
      class Application {}
      Module({ controllers: [createController()] })(Application)
      const app = await NestFactory.create(Application, { logger: false, bodyParser })
      const guard: CanActivate = {
        canActivate: (context) => context.switchToHttp().getRequest().headers['x-user'] === 'ada',
      }
      app.useGlobalGuards(guard)
      await app.init()
      closeAfterTest(() => app.close())
      const port = await listen(app.getHttpServer() as Server)
      const json = 'Content-Type: application/json'
      const post = { method: 'POST', target: '/api/users', body: '{"name":"Ada"}' }
      expect((await send(port, { ...post, fields: [json] })).status).toBe(403)
      const created = await send(port, { ...post, fields: [json, 'X-User: ada'] })
      expect([created.status, created.field('location')]).toEqual([201, '/api/users/1'])
      const listed = await send(port, { target: '/api/users', fields: ['X-User: ada'] })
      expect([listed.text, listed.field('x-content-type-options')]).toEqual(['[{"id":1,"name":"Ada"}]', 'nosniff'])
      expect((await send(port, { target: '/api', fields: ['X-User: ada'] })).status).toBe(404)
    }
  })
})
