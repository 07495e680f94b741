// Koa 3 with router, bodyparser, conditional-get, etag, cors and multer.

import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { bodyParser } from '@koa/bodyparser'
import cors from '@koa/cors'
import etagMod from '@koa/etag'
import multer from '@koa/multer'
import Router from '@koa/router'
import jsonpatch from 'fast-json-patch'
import { importJWK, jwtVerify } from 'jose'
import mergePatch from 'json-merge-patch'
import Koa from 'koa'
import conditional from 'koa-conditional-get'
import { ALLOW_HEADERS, ALLOW_METHODS, MAX_AGE, ORIGIN } from '../lib/data.mjs'
import { env, etagMatches, ready, resettable, Store, uploadPath } from './_lib.mjs'

const auto = process.env.BENCH_AUTO_ETAG === '1'
const etag = etagMod.default ?? etagMod
const store = resettable(new Store())
const app = new Koa()
const router = new Router()
app.use(
  cors({
    origin: (ctx) => (ctx.get('Origin') === ORIGIN ? ORIGIN : ''),
    allowMethods: ALLOW_METHODS,
    allowHeaders: ALLOW_HEADERS,
    maxAge: MAX_AGE,
  }),
)
app.use(conditional())
app.use(etag())
app.use(
  bodyParser({
    jsonLimit: '2mb',
    enableTypes: ['json', 'form', 'text'],
    extendTypes: { json: ['application/json', 'application/merge-patch+json', 'application/json-patch+json'] },
  }),
)

const sendRec = (ctx, rec) => {
  if (!rec) return
  if (!auto) ctx.set('ETag', rec.etag)
  ctx.set('Last-Modified', rec.lastModified)
  ctx.body = rec.data
}
const blocked = (ctx, rec) => {
  const im = ctx.get('If-Match')
  if (im && !etagMatches(im, rec.etag)) {
    ctx.status = 412
    ctx.body = ''
    return true
  }
  return false
}

router.get('/users', (ctx) => {
  ctx.body = store.page(Math.min(Number(ctx.query.limit) || 50, 100))
})
router.get('/users/:id', (ctx) => sendRec(ctx, store.users.get(Number(ctx.params.id))))
router.post('/users', (ctx) => {
  const rec = store.create(ctx.request.body)
  ctx.status = 201
  ctx.set('Location', `/users/${rec.data.id}`)
  sendRec(ctx, rec)
})
router.put('/users/:id', (ctx) => {
  const rec = store.users.get(Number(ctx.params.id))
  if (!rec) return
  if (blocked(ctx, rec)) return
  store.touch(rec, ctx.request.body)
  ctx.set('ETag', rec.etag)
  ctx.set('Last-Modified', rec.lastModified)
  ctx.status = 204
})
router.get('/docs/:name', (ctx) => sendRec(ctx, store.docs.get(ctx.params.name)))
router.patch('/docs/:name', (ctx) => {
  const rec = store.docs.get(ctx.params.name)
  if (!rec) return
  if (blocked(ctx, rec)) return
  let next
  if (ctx.is('application/json-patch+json')) {
    try {
      next = jsonpatch.applyPatch(rec.data, ctx.request.body, true, false).newDocument
    } catch {
      ctx.status = 422
      return
    }
  } else if (ctx.is('application/merge-patch+json')) next = mergePatch.apply(rec.data, ctx.request.body)
  else {
    ctx.set('Accept-Patch', 'application/json-patch+json, application/merge-patch+json')
    ctx.status = 415
    return
  }
  sendRec(ctx, store.touch(rec, next))
})

router.get('/files/:name', async (ctx) => {
  const file = path.join(env.files, path.basename(ctx.params.name))
  const st = await fs.promises.stat(file).catch(() => null)
  if (!st) return
  ctx.type = path.extname(file)
  ctx.set('Accept-Ranges', 'bytes')
  ctx.set('ETag', `"${st.size.toString(16)}-${Math.trunc(st.mtimeMs).toString(16)}"`)
  ctx.set('Last-Modified', st.mtime.toUTCString())
  const m = /^bytes=(\d*)-(\d*)$/.exec(ctx.get('Range'))
  if (m && (m[1] || m[2])) {
    const start = m[1] === '' ? Math.max(0, st.size - Number(m[2])) : Number(m[1])
    const end = m[1] === '' || m[2] === '' ? st.size - 1 : Math.min(Number(m[2]), st.size - 1)
    if (start > end) {
      ctx.set('Content-Range', `bytes */${st.size}`)
      ctx.status = 416
      return
    }
    ctx.status = 206
    ctx.set('Content-Range', `bytes ${start}-${end}/${st.size}`)
    ctx.body = fs.createReadStream(file, { start, end })
    ctx.length = end - start + 1
  } else {
    ctx.body = fs.createReadStream(file)
    ctx.length = st.size
  }
})

const disk = multer({
  storage: multer.diskStorage({
    destination: (_req, _file, cb) => cb(null, env.uploads),
    filename: (req, _file, cb) => {
      req.uploadId = store.nextUpload++
      cb(null, uploadPath(req.uploadId).split('/').pop())
    },
  }),
})
router.post('/uploads', disk.single('file'), (ctx) => {
  ctx.status = 202
  ctx.set('Location', `/uploads/${ctx.req.uploadId}`)
  ctx.body = ''
})
const mem = multer({ storage: multer.memoryStorage() })
let nextForm = 1
router.post('/forms', mem.single('file'), (ctx) => {
  const id = nextForm++
  const file = ctx.file ?? ctx.request.file
  ctx.status = 201
  ctx.set('Location', `/forms/${id}`)
  ctx.body = { id, ...ctx.request.body, file: { name: file.originalname, size: file.size } }
})

const bearer = (alg, key) => async (ctx, next) => {
  const [scheme, token] = ctx.get('Authorization').split(' ')
  try {
    if (scheme !== 'Bearer') throw new Error('scheme')
    ctx.state.auth = (await jwtVerify(token, key, { algorithms: [alg], audience: 'bench' })).payload
  } catch {
    ctx.status = 401
    ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"')
    return
  }
  return next()
}
const K = env.keys
if (K.HS256) {
  for (const [alg, key] of [
    ['HS256', Buffer.from(K.HS256.secret, 'base64url')],
    ['EdDSA', await importJWK(K.EdDSA.public, 'EdDSA')],
    ['ES256', await importJWK(K.ES256.public, 'ES256')],
  ]) {
    router.get(`/${alg.toLowerCase()}/users/:id`, bearer(alg, key), (ctx) =>
      sendRec(ctx, store.users.get(Number(ctx.params.id))),
    )
  }
}
app.use(router.routes()).use(router.allowedMethods())
ready(http.createServer(app.callback()))
