// Express 5 with the middleware a team would reach for. BENCH_AUTO_ETAG=1: Express's own body-hash ETag.

import cors from 'cors'
import express from 'express'
import jsonpatch from 'fast-json-patch'
import { importJWK, jwtVerify } from 'jose'
import mergePatch from 'json-merge-patch'
import multer from 'multer'
import { ALLOW_HEADERS, ALLOW_METHODS, MAX_AGE, ORIGIN } from '../lib/data.mjs'
import { env, etagMatches, ready, resettable, Store, uploadPath } from './_lib.mjs'

const auto = process.env.BENCH_AUTO_ETAG === '1'
const store = resettable(new Store())
const app = express()
app.disable('x-powered-by')
app.use(cors({ origin: [ORIGIN], methods: ALLOW_METHODS, allowedHeaders: ALLOW_HEADERS, maxAge: MAX_AGE }))
app.use(
  express.json({
    limit: '2mb',
    type: ['application/json', 'application/merge-patch+json', 'application/json-patch+json'],
  }),
)

const sendRec = (res, rec) => {
  if (!rec) return res.sendStatus(404)
  if (!auto) res.set('ETag', rec.etag)
  res.set('Last-Modified', rec.lastModified).json(rec.data)
}
const precondition = (req, res, rec) => {
  const im = req.get('If-Match')
  if (im && !etagMatches(im, rec.etag)) {
    res.status(412).end()
    return false
  }
  return true
}

app.get('/users', (req, res) => res.json(store.page(Math.min(Number(req.query.limit) || 50, 100))))
app.get('/users/:id', (req, res) => sendRec(res, store.users.get(Number(req.params.id))))
app.post('/users', (req, res) => {
  const rec = store.create(req.body)
  res
    .status(201)
    .set({ Location: `/users/${rec.data.id}`, ETag: rec.etag, 'Last-Modified': rec.lastModified })
    .json(rec.data)
})
app.put('/users/:id', (req, res) => {
  const rec = store.users.get(Number(req.params.id))
  if (!rec) return res.sendStatus(404)
  if (!precondition(req, res, rec)) return
  store.touch(rec, req.body)
  res.status(204).set({ ETag: rec.etag, 'Last-Modified': rec.lastModified }).end()
})
app.get('/docs/:name', (req, res) => sendRec(res, store.docs.get(req.params.name)))
app.patch('/docs/:name', (req, res) => {
  const rec = store.docs.get(req.params.name)
  if (!rec) return res.sendStatus(404)
  if (!precondition(req, res, rec)) return
  let next
  if (req.is('application/json-patch+json')) {
    try {
      next = jsonpatch.applyPatch(rec.data, req.body, true, false).newDocument
    } catch {
      return res.status(422).end()
    }
  } else if (req.is('application/merge-patch+json')) next = mergePatch.apply(rec.data, req.body)
  else return res.set('Accept-Patch', 'application/json-patch+json, application/merge-patch+json').status(415).end()
  sendRec(res, store.touch(rec, next))
})

app.use('/files', express.static(env.files))

const disk = multer({
  storage: multer.diskStorage({
    destination: (_req, _file, cb) => cb(null, env.uploads),
    filename: (req, _file, cb) => {
      req.uploadId = store.nextUpload++
      cb(null, uploadPath(req.uploadId).split('/').pop())
    },
  }),
})
app.post('/uploads', disk.single('file'), (req, res) =>
  res.status(202).set('Location', `/uploads/${req.uploadId}`).end(),
)
const mem = multer({ storage: multer.memoryStorage() })
let nextForm = 1
app.post('/forms', mem.single('file'), (req, res) => {
  const id = nextForm++
  res
    .status(201)
    .set('Location', `/forms/${id}`)
    .json({ id, ...req.body, file: { name: req.file.originalname, size: req.file.size } })
})

const bearer = (alg, key) => async (req, res, next) => {
  const [scheme, token] = (req.get('Authorization') ?? '').split(' ')
  try {
    if (scheme !== 'Bearer') throw new Error('scheme')
    req.auth = (await jwtVerify(token, key, { algorithms: [alg], audience: 'bench' })).payload
  } catch {
    return res.set('WWW-Authenticate', 'Bearer error="invalid_token"').sendStatus(401)
  }
  next()
}
const K = env.keys
if (K.HS256) {
  for (const [alg, key] of [
    ['HS256', Buffer.from(K.HS256.secret, 'base64url')],
    ['EdDSA', await importJWK(K.EdDSA.public, 'EdDSA')],
    ['ES256', await importJWK(K.ES256.public, 'ES256')],
  ]) {
    app.get(`/${alg.toLowerCase()}/users/:id`, bearer(alg, key), (req, res) =>
      sendRec(res, store.users.get(Number(req.params.id))),
    )
  }
}
ready((await import('node:http')).createServer(app))
