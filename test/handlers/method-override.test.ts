import express from 'express'
import { describe, expect, it } from 'vitest'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { HOSTS, listen, serve } from './serve.ts'

const FIELD = 'X-HTTP-Method-Override'

describe.each(HOSTS)('methodOverride in %s', (_name, mount) => {
  const start = () => serve(mount([methodOverride()], (req) => req.method!))

  it.each(['PUT', 'PATCH', 'DELETE'])('lets POST stand for %s (interface OPTIONS 7, row H75)', async (method) => {
    expect((await (await start())('POST', '/', { [FIELD]: method })).text).toBe(method)
  })

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('is ignored on %s (threat 113)', async (method) => {
    expect((await (await start())(method, '/', { [FIELD]: 'DELETE' })).text).toBe(method)
  })

  it.each(['TRACE', 'CONNECT', 'GET', 'HEAD', 'POST', 'OPTIONS', 'delete', 'Delete', 'delete, put', 'PUT, PUT', ''])(
    'answers 400 for %j (threat 113)',
    async (method) => {
      expect((await (await start())('POST', '/', { [FIELD]: method })).status).toBe(400)
    },
  )

  it('answers 400 for a field that occurs twice, also with the same method (threat 113)', async () => {
    expect((await (await start())('POST', '/', { [FIELD]: ['PUT', 'PUT'] })).status).toBe(400)
  })

  it('looks nowhere else (threat 113)', async () => {
    const send = await start()
    expect((await send('POST', '/?_method=DELETE', {}, '_method=DELETE')).text).toBe('POST')
    expect((await send('POST', '/', { 'X-HTTP-Method': 'DELETE', 'X-Method-Override': 'DELETE' })).text).toBe('POST')
  })
})

describe('methodOverride', () => {
  it('routes by the method that is meant, and keeps the one that was sent', async () => {
    const app = express()
    app.use(methodOverride())
    app.delete('/users/1', (req, res) => void res.send((req as { originalMethod?: string }).originalMethod))
    app.post('/users/1', (_req, res) => void res.send('posted'))
    const send = await serve(app)
    expect((await send('POST', '/users/1', { [FIELD]: 'DELETE' })).text).toBe('POST')
    expect((await send('POST', '/users/1')).text).toBe('posted')
  })

  it('keeps the method that was sent where middleware before it has made a POST of that', async () => {
    const app = express()
    app.use((req, _res, next) => {
      Object.assign(req, { originalMethod: req.method, method: 'POST' })
      next()
    })
    app.use(methodOverride())
    app.use((req, res) => void res.send(`${(req as { originalMethod?: string }).originalMethod} ${req.method}`))
    expect((await (await serve(app))('REPORT', '/', { [FIELD]: 'PUT' })).text).toBe('REPORT PUT')
  })

  it('is harmless when it is mounted twice', async () => {
    const app = express()
    app.use(methodOverride(), methodOverride())
    app.use((req, res) => void res.send(req.method))
    expect((await (await serve(app))('POST', '/', { [FIELD]: 'PATCH' })).text).toBe('PATCH')
  })

  it('leaves the connection in sync, content included (row K4)', async () => {
    const app = express()
    app.use(methodOverride())
    app.use((req, res) => void res.send(req.method))
    const client = await openRawClient(await listen(app))
    const head = `POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n`
    client.send(`${head}${FIELD}: TRACE\r\n\r\nabc${head}${FIELD}: PUT\r\n\r\nabc`)
    expect((await client.read()).status).toBe(400)
    expect((await client.read()).body.toString()).toBe('PUT')
    client.socket.destroy()
  })
})
