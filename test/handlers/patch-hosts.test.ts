import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import { beforeEach, describe, expect, it } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { patch } from '../../src/handlers/patch.ts'
import {
  createRecord,
  JSON_PATCH,
  MERGE_PATCH,
  origin,
  type PatchedRecord,
  pieceFor,
  send,
  start,
} from './patched-record.ts'

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
] as const)('patch on %s', (_, framework) => {
  let record: PatchedRecord
  let app: ReturnType<typeof express>
  beforeEach(() => {
    record = createRecord({ name: 'Ada' })
    app = framework()
  })

  it('answers below a mount point, and lets other methods go on', async () => {
    const router = framework.Router()
    router.use('/doc', pieceFor(record))
    router.get('/doc', (_req, res) => void res.json({ from: 'express' }))
    router.options('/doc', (_req, res) => void res.status(200).end())
    app.use('/api', router)
    await start(app)
    const path = '/api/doc'
    const answer = await send({ name: 'Bo' }, {}, { path })
    expect([answer.status, answer.headers.get('content-location')]).toEqual([200, path])
    expect(await (await fetch(origin + path)).json()).toEqual({ from: 'express' })
    const options = await fetch(origin + path, { method: 'OPTIONS' })
    expect(options.headers.get('accept-patch')).toBe(`${JSON_PATCH}, ${MERGE_PATCH}`)
  })

  const parsers: [string, express.RequestHandler][] = [
    ['json', framework.json({ type: [JSON_PATCH, MERGE_PATCH] })],
    ['text', framework.text({ type: '*/*' })],
    ['raw', framework.raw({ type: '*/*' })],
    ['json, which leaves patches unread', framework.json()],
  ]
  it.each(parsers)('takes the content from a parser before it: %s', async (_, parser) => {
    app.use(parser)
    app.patch('/doc', pieceFor(record))
    await start(app)
    expect((await send([{ op: 'add', path: '/x', value: 1 }])).json()).toEqual({ name: 'Ada', x: 1 })
    expect((await send({ x: null })).json()).toEqual({ name: 'Ada' })
    expect(await send([{ op: 'remove', path: '/x' }])).toMatchObject({ status: 409 })
    // Some make an object of no bytes.
    expect(await send('')).toMatchObject({ status: 400 })
  })

  it('holds content that another parser parsed to the same rules', async () => {
    app.use(framework.json({ type: [JSON_PATCH, MERGE_PATCH], limit: '10mb' }))
    app.patch('/doc', pieceFor(record))
    await start(app)
    const merge = await send('{"__proto__":{"isAdmin":true},"constructor":{"x":1}}')
    expect(merge.text).toBe('{"name":"Ada","__proto__":{"isAdmin":true},"constructor":{"x":1}}')
    expect(Reflect.get({}, 'isAdmin')).toBeUndefined()
    expect((await send(`{"a":${'['.repeat(3000)}${']'.repeat(3000)}}`)).status).toBe(400)
  })

  it('gives unexpected errors to the error handler', async () => {
    app.patch('/doc', patch({ read: () => Promise.reject(new Error('away')), write: () => undefined }))
    app.use(
      ((error, _req, res, _next) =>
        void res.status(500).send(`caught ${error.message}`)) as express.ErrorRequestHandler,
    )
    await start(app)
    expect((await send({ a: 1 })).text).toBe('caught away')
  })

  it('does not wait for content that is gone', async () => {
    app.use((req, _res, next) => void req.resume().on('end', next))
    app.patch('/doc', pieceFor(record))
    app.use(((error, _req, res, _next) => void res.status(500).send(error.name)) as express.ErrorRequestHandler)
    await start(app)
    expect(await send({ a: 1 })).toMatchObject({ status: 500, text: 'TypeError' })
  })
})

describe('patch on Koa', () => {
  it('answers through koaMiddleware, and lets other methods go on', async () => {
    const app = new Koa()
    app.use(koaMiddleware(pieceFor(createRecord({ name: 'Ada' }))))
    app.use((context) => {
      context.body = 'koa'
    })
    await start(app.callback())
    expect((await send({ name: 'Bo' })).json()).toEqual({ name: 'Bo' })
    expect(await (await fetch(origin)).text()).toBe('koa')
  })
})
