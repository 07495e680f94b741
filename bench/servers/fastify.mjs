// Fastify 5 with its own cors, etag, static and multipart plugins; a response schema on users, as its guide advises.
import fs from 'node:fs'
import { pipeline } from 'node:stream/promises'
import cors from '@fastify/cors'
import etag from '@fastify/etag'
import multipart from '@fastify/multipart'
import fastifyStatic from '@fastify/static'
import jsonpatch from 'fast-json-patch'
import Fastify from 'fastify'
import { importJWK, jwtVerify } from 'jose'
import mergePatch from 'json-merge-patch'
import { ALLOW_HEADERS, ALLOW_METHODS, MAX_AGE, ORIGIN } from '../lib/data.mjs'
import { countRequests, env, etagMatches, resettable, Store, uploadPath } from './_lib.mjs'

const auto = process.env.BENCH_AUTO_ETAG === '1'
const store = resettable(new Store())
const app = Fastify({ logger: false, bodyLimit: 2 << 20 })
const userSchema = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    email: { type: 'string' },
    role: { type: 'string' },
    active: { type: 'boolean' },
    team: { type: 'string' },
    note: { type: 'string' },
  },
}
const reply200 = { schema: { response: { 200: userSchema } } }
await app.register(cors, { origin: [ORIGIN], methods: ALLOW_METHODS, allowedHeaders: ALLOW_HEADERS, maxAge: MAX_AGE })
app.addContentTypeParser(
  ['application/merge-patch+json', 'application/json-patch+json'],
  { parseAs: 'string' },
  app.getDefaultJsonParser('error', 'error'),
)

// BENCH_FIELDS=1 (peer fastify-fields): the same header fields as a careful service sends.
if (process.env.BENCH_FIELDS === '1') {
  app.addHook('onRequest', (req, reply, done) => {
    const caching = req.method === 'POST' ? 'no-store' : 'no-cache'
    reply.header('Cache-Control', caching).header('X-Content-Type-Options', 'nosniff')
    if (req.method === 'GET') reply.header('Accept-Ranges', 'bytes')
    done()
  })
}

const sendRec = (reply, rec) => {
  if (!rec) return reply.code(404).send()
  if (!auto) reply.header('ETag', rec.etag)
  return reply.header('Last-Modified', rec.lastModified).send(rec.data)
}

await app.register(async (api) => {
  await api.register(etag)
  api.get('/users', { schema: { response: { 200: { type: 'array', items: userSchema } } } }, (req, reply) =>
    reply.send(store.page(Math.min(Number(req.query.limit) || 50, 100))),
  )
  api.get('/users/:id', reply200, (req, reply) => sendRec(reply, store.users.get(Number(req.params.id))))
  api.post('/users', { schema: { response: { 201: userSchema } } }, (req, reply) => {
    const rec = store.create(req.body)
    reply.code(201).header('Location', `/users/${rec.data.id}`)
    return sendRec(reply, rec)
  })
  api.put('/users/:id', (req, reply) => {
    const rec = store.users.get(Number(req.params.id))
    if (!rec) return reply.code(404).send()
    const im = req.headers['if-match']
    if (im && !etagMatches(im, rec.etag)) return reply.code(412).send()
    store.touch(rec, req.body)
    return reply.code(204).header('ETag', rec.etag).header('Last-Modified', rec.lastModified).send()
  })
  api.get('/docs/:name', (req, reply) => sendRec(reply, store.docs.get(req.params.name)))
  api.patch('/docs/:name', (req, reply) => {
    const rec = store.docs.get(req.params.name)
    if (!rec) return reply.code(404).send()
    const im = req.headers['if-match']
    if (im && !etagMatches(im, rec.etag)) return reply.code(412).send()
    const ct = req.headers['content-type'] ?? ''
    let next
    if (ct.startsWith('application/json-patch+json')) {
      try {
        next = jsonpatch.applyPatch(rec.data, req.body, true, false).newDocument
      } catch {
        return reply.code(422).send()
      }
    } else if (ct.startsWith('application/merge-patch+json')) next = mergePatch.apply(rec.data, req.body)
    else
      return reply.code(415).header('Accept-Patch', 'application/json-patch+json, application/merge-patch+json').send()
    return sendRec(reply, store.touch(rec, next))
  })
  const bearer = (alg, key) => async (req, reply) => {
    const [scheme, token] = (req.headers.authorization ?? '').split(' ')
    try {
      if (scheme !== 'Bearer') throw new Error('scheme')
      req.auth = (await jwtVerify(token, key, { algorithms: [alg], audience: 'bench' })).payload
    } catch {
      return reply.code(401).header('WWW-Authenticate', 'Bearer error="invalid_token"').send()
    }
  }
  api.decorateRequest('auth', null)
  const K = env.keys
  if (K.HS256) {
    for (const [alg, key] of [
      ['HS256', Buffer.from(K.HS256.secret, 'base64url')],
      ['EdDSA', await importJWK(K.EdDSA.public, 'EdDSA')],
      ['ES256', await importJWK(K.ES256.public, 'ES256')],
    ]) {
      api.get(`/${alg.toLowerCase()}/users/:id`, { ...reply200, preHandler: bearer(alg, key) }, (req, reply) =>
        sendRec(reply, store.users.get(Number(req.params.id))),
      )
    }
  }
})

await app.register(fastifyStatic, { root: env.files, prefix: '/files/' })
await app.register(async (up) => {
  await up.register(multipart, { limits: { fileSize: Infinity } })
  up.post('/uploads', async (req, reply) => {
    const id = store.nextUpload++
    for await (const part of req.parts())
      if (part.type === 'file') await pipeline(part.file, fs.createWriteStream(uploadPath(id)))
    return reply.code(202).header('Location', `/uploads/${id}`).send()
  })
  let nextForm = 1
  up.post('/forms', async (req, reply) => {
    const out = { id: nextForm++ }
    for await (const part of req.parts()) {
      if (part.type === 'file') {
        const buf = await part.toBuffer()
        out[part.fieldname] = { name: part.filename, size: buf.length }
      } else out[part.fieldname] = part.value
    }
    return reply.code(201).header('Location', `/forms/${out.id}`).send(out)
  })
})
countRequests(app.server)
await app.listen({ port: 0, host: '127.0.0.1' })
process.stdout.write(`ready ${app.server.address().port}\n`)
process.on('SIGTERM', () => process.exit(0))
