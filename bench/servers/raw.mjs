// The limit: hand-written node:http with nothing between the request and the answer.
// Representations are serialised once, at write time; header arrays are kept beside them.

import crypto from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { ALLOW_HEADERS, ALLOW_METHODS, docData, MAX_AGE, ORIGIN, SEED_TIME, userData } from '../lib/data.mjs'
import { env, etagMatches, ready, uploadPath } from './_lib.mjs'
import { RawMultipart } from './_multipart.mjs'
import { applyJsonPatch, applyMergePatch } from './_patch.mjs'

let users, docs, nextId, nextUpload
let nowSec = 0,
  nowStr = ''
function httpNow() {
  const t = Date.now()
  const s = (t / 1000) | 0
  if (s !== nowSec) {
    nowSec = s
    nowStr = new Date(t).toUTCString()
  }
  return nowStr
}

// BENCH_FIELDS=1 (peer raw-fields): the same header fields as a careful service sends.
const isFull = process.env.BENCH_FIELDS === '1'
const PLUS = isFull ? ['Cache-Control', 'no-cache', 'X-Content-Type-Options', 'nosniff'] : []
const PLUS_GET = isFull ? [...PLUS, 'Accept-Ranges', 'bytes'] : []
const PLUS_POST = isFull ? ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'] : []

// The body is kept as a string when it is ASCII: header and body then leave in one write.
// It is made when first asked for: a PUT answered with 204 never needs it.
function render(rec) {
  const body = JSON.stringify(rec.data)
  const len = Buffer.byteLength(body)
  rec.body = len === body.length ? body : Buffer.from(body)
  rec.h200 = [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(len),
    'ETag',
    rec.etag,
    'Last-Modified',
    rec.lastModified,
    'Vary',
    'Origin',
    ...PLUS_GET,
  ]
  rec.h304 = ['ETag', rec.etag, 'Last-Modified', rec.lastModified, 'Vary', 'Origin', ...PLUS]
  return rec
}
const make = (data, lastModified) =>
  render({ data, version: 1, etag: '"v1"', lastModified, body: null, h200: null, h304: null })
function update(rec, data) {
  rec.data = data
  rec.etag = `"v${++rec.version}"`
  rec.lastModified = httpNow()
  rec.body = null
  rec.h304 = ['ETag', rec.etag, 'Last-Modified', rec.lastModified, 'Vary', 'Origin', ...PLUS]
}

function reset() {
  const lm = new Date(SEED_TIME).toUTCString()
  users = new Map()
  for (let id = 1; id <= env.users; id++) users.set(`/users/${id}`, make(userData(id), lm))
  nextId = env.users + 1
  docs = new Map()
  for (let n = 0; n < env.docs; n++) docs.set(`/docs/${n}`, make(docData(n), lm))
  nextUpload = 1
}
reset()
process.on('SIGUSR2', reset)

const bigPath = path.join(env.files, 'big.bin')
const big = { fd: fs.openSync(bigPath, 'r'), size: 0, etag: '', lastModified: '' }
{
  const st = fs.fstatSync(big.fd)
  big.size = st.size
  big.etag = `"${st.size.toString(16)}-${Math.trunc(st.mtimeMs).toString(16)}"`
  big.lastModified = st.mtime.toUTCString()
}

const fail = (res, status, headers = []) => {
  res.writeHead(status, ['Content-Length', '0', ...headers])
  res.end()
}

function readBody(req, cb) {
  let first = null,
    rest = null
  req.on('data', (c) => {
    if (first === null) first = c
    else (rest ??= [first]).push(c)
  })
  req.on('end', () => cb(first === null ? '' : (rest === null ? first : Buffer.concat(rest)).toString()))
}

function parseJson(res, text) {
  try {
    return JSON.parse(text)
  } catch {
    fail(res, 400)
    return undefined
  }
}

function sendRec(req, res, rec) {
  if (rec === undefined) return fail(res, 404)
  const h = req.headers
  const inm = h['if-none-match']
  if (inm !== undefined) {
    if (inm === rec.etag || etagMatches(inm, rec.etag, true)) {
      res.writeHead(304, rec.h304)
      res.end()
      return
    }
  } else {
    const ims = h['if-modified-since']
    if (ims !== undefined && (ims === rec.lastModified || Date.parse(rec.lastModified) <= Date.parse(ims))) {
      res.writeHead(304, rec.h304)
      res.end()
      return
    }
  }
  sendBody(res, rec)
}

function sendBody(res, rec) {
  if (rec.body === null) render(rec)
  res.writeHead(200, rec.h200)
  if (typeof rec.body === 'string') res.end(rec.body, 'latin1')
  else res.end(rec.body)
}

function collection(res, limit) {
  let body = '['
  let n = 0
  for (const rec of users.values()) {
    if (n++) body += ','
    if (rec.body === null) render(rec)
    body += rec.body
    if (n === limit) break
  }
  body += ']'
  res.writeHead(200, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Vary',
    'Origin',
  ])
  res.end(body, 'latin1')
}

// Read buffers are kept and used again: fresh ones cost page faults on every request.
const CHUNK = 512 * 1024
const SMALL = 64 * 1024
const pool = (size, max) => {
  const free = []
  return {
    take: () => free.pop() ?? Buffer.allocUnsafeSlow(size),
    give: (b) => {
      if (free.length < max) free.push(b)
    },
  }
}
const smallPool = pool(SMALL, 64)
const largePool = pool(CHUNK, 8)
function sendFile(req, res) {
  const range = req.headers.range
  let start = 0,
    end = big.size - 1,
    status = 200
  if (range !== undefined) {
    const m = /^bytes=(\d*)-(\d*)$/.exec(range)
    if (m && (m[1] || m[2])) {
      if (m[1] === '') start = Math.max(0, big.size - Number(m[2]))
      else {
        start = Number(m[1])
        if (m[2] !== '') end = Math.min(end, Number(m[2]))
      }
      if (start > end || start >= big.size) return fail(res, 416, ['Content-Range', `bytes */${big.size}`])
      status = 206
    }
  }
  const len = end - start + 1
  const h = [
    'Content-Type',
    'application/octet-stream',
    'Content-Length',
    String(len),
    'ETag',
    big.etag,
    'Last-Modified',
    big.lastModified,
    'Accept-Ranges',
    'bytes',
    'Vary',
    'Origin',
    ...PLUS,
  ]
  if (status === 206) h.push('Content-Range', `bytes ${start}-${end}/${big.size}`)
  if (len <= SMALL) {
    const buf = smallPool.take()
    fs.read(big.fd, buf, 0, len, start, (err, n) => {
      if (err || n !== len) return res.destroy()
      res.writeHead(status, h)
      res.end(n === SMALL ? buf : buf.subarray(0, n), () => smallPool.give(buf))
    })
    return
  }
  res.writeHead(status, h)
  const buf = largePool.take()
  let at = start
  const next = () => {
    const want = Math.min(CHUNK, end - at + 1)
    fs.read(big.fd, buf, 0, want, at, (err, n) => {
      if (err || n === 0 || res.destroyed) return res.destroy()
      at += n
      const part = n === CHUNK ? buf : buf.subarray(0, n)
      if (at > end) res.end(part, () => largePool.give(buf))
      else res.write(part, next)
    })
  }
  next()
}

const JSON_HEAD = (rec, extra) => [
  'Content-Type',
  'application/json',
  'Content-Length',
  rec.h200[3],
  'ETag',
  rec.etag,
  'Last-Modified',
  rec.lastModified,
  'Vary',
  'Origin',
  ...PLUS_POST,
  ...extra,
]

function post(req, res) {
  readBody(req, (text) => {
    const data = parseJson(res, text)
    if (data === undefined) return
    const id = nextId++
    data.id = id
    const uri = `/users/${id}`
    const rec = make(data, httpNow())
    users.set(uri, rec)
    res.writeHead(201, JSON_HEAD(rec, ['Location', uri]))
    res.end(rec.body)
  })
}

function put(req, res) {
  readBody(req, (text) => {
    const rec = users.get(req.url)
    if (rec === undefined) return fail(res, 404)
    const im = req.headers['if-match']
    if (im !== undefined && im !== rec.etag && !etagMatches(im, rec.etag)) return fail(res, 412)
    const data = parseJson(res, text)
    if (data === undefined) return
    update(rec, data)
    res.writeHead(204, rec.h304)
    res.end()
  })
}

function patch(req, res) {
  readBody(req, (text) => {
    const rec = docs.get(req.url)
    if (rec === undefined) return fail(res, 404)
    const doc = parseJson(res, text)
    if (doc === undefined) return
    const ct = req.headers['content-type'] ?? ''
    let next
    try {
      if (ct.startsWith('application/json-patch+json')) next = applyJsonPatch(rec.data, doc)
      else if (ct.startsWith('application/merge-patch+json')) next = applyMergePatch(rec.data, doc)
      else return fail(res, 415, ['Accept-Patch', 'application/json-patch+json, application/merge-patch+json'])
    } catch {
      return fail(res, 422)
    }
    update(rec, next)
    sendBody(res, rec)
  })
}

const PREFLIGHT = [
  'Access-Control-Allow-Origin',
  ORIGIN,
  'Access-Control-Allow-Methods',
  ALLOW_METHODS.join(','),
  'Access-Control-Allow-Headers',
  ALLOW_HEADERS.join(','),
  'Access-Control-Max-Age',
  String(MAX_AGE),
  'Vary',
  'Origin',
  ...PLUS,
]
function options(req, res) {
  const h = req.headers
  if (h.origin === ORIGIN && h['access-control-request-method'] !== undefined) {
    res.writeHead(204, PREFLIGHT)
    res.end()
    return
  }
  res.writeHead(204, ['Allow', ALLOW_METHODS.join(', ')])
  res.end()
}

const BATCH = 256 * 1024
function upload(req, res) {
  const id = nextUpload++
  const fields = {}
  const out = fs.openSync(uploadPath(id), 'w')
  // Chunks are gathered and leave together in one writev; the next batch gathers meanwhile.
  let list = [],
    bytes = 0,
    at = 0,
    busy = false,
    done = false
  const flush = () => {
    if (busy) return
    if (list.length === 0) {
      if (done)
        fs.close(out, () => {
          res.writeHead(202, ['Location', `/uploads/${id}`, 'Content-Length', '0', 'Vary', 'Origin'])
          res.end()
        })
      return
    }
    if (bytes < BATCH && !done) return
    busy = true
    const now = list,
      pos = at
    at += bytes
    list = []
    bytes = 0
    fs.writev(out, now, pos, (err) => {
      busy = false
      if (err) return res.destroy()
      if (req.isPaused()) req.resume()
      flush()
    })
  }
  const mp = new RawMultipart(req.headers['content-type'], {
    field: (name, value) => {
      fields[name] = value
    },
    file: () => {},
    chunk: (buf) => {
      list.push(buf)
      bytes += buf.length
    },
  })
  req.on('data', (c) => {
    mp.push(c)
    if (bytes > 4 * BATCH) req.pause()
    flush()
  })
  req.on('end', () => {
    done = true
    flush()
  })
}

let nextForm = 1
function form(req, res) {
  const out = { id: nextForm++ }
  let file = null
  const mp = new RawMultipart(req.headers['content-type'], {
    field: (name, value) => {
      out[name] = value
    },
    file: (name, filename) => {
      file = { name: filename, size: 0 }
      out[name] = file
    },
    chunk: (buf) => {
      file.size += buf.length
      ;(file.parts ??= []).push(buf)
    },
  })
  req.on('data', (c) => mp.push(c))
  req.on('end', () => {
    if (file) file.parts = undefined
    const body = JSON.stringify(out)
    res.writeHead(201, [
      'Content-Type',
      'application/json',
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Location',
      `/forms/${out.id}`,
      'Vary',
      'Origin',
    ])
    res.end(body)
  })
}

// JWT with node:crypto alone, verified on every request.
const K = env.keys
const secret = K.HS256 && crypto.createSecretKey(Buffer.from(K.HS256.secret, 'base64url'))
const edKey = K.EdDSA && crypto.createPublicKey({ key: K.EdDSA.public, format: 'jwk' })
const esKey = K.ES256 && crypto.createPublicKey({ key: K.ES256.public, format: 'jwk' })
const esOpts = { key: esKey, dsaEncoding: 'ieee-p1363' }
const HEADS = new Map()
function verifyJwt(token, alg) {
  const d1 = token.indexOf('.')
  const d2 = token.indexOf('.', d1 + 1)
  if (d2 < 0) return null
  const head = token.slice(0, d1)
  let hAlg = HEADS.get(head)
  if (hAlg === undefined) {
    try {
      hAlg = JSON.parse(Buffer.from(head, 'base64url')).alg
    } catch {
      return null
    }
    if (HEADS.size < 64) HEADS.set(head, hAlg)
  }
  if (hAlg !== alg) return null
  const sig = token.slice(d2 + 1)
  const input = token.slice(0, d2)
  if (alg === 'HS256') {
    const want = crypto.createHmac('sha256', secret).update(input).digest()
    const got = Buffer.from(sig, 'base64url')
    if (got.length !== want.length || !crypto.timingSafeEqual(got, want)) return null
  } else if (
    !crypto.verify(
      alg === 'EdDSA' ? null : 'sha256',
      Buffer.from(input),
      alg === 'EdDSA' ? edKey : esOpts,
      Buffer.from(sig, 'base64url'),
    )
  )
    return null
  let claims
  try {
    claims = JSON.parse(Buffer.from(token.slice(d1 + 1, d2), 'base64url'))
  } catch {
    return null
  }
  if (typeof claims.exp !== 'number' || claims.exp <= Date.now() / 1000 || claims.aud !== 'bench') return null
  return claims
}
const secured = (prefix, alg) => (req, res) => {
  const a = req.headers.authorization
  if (a === undefined || !a.startsWith('Bearer ') || verifyJwt(a.slice(7), alg) === null)
    return fail(res, 401, ['WWW-Authenticate', 'Bearer error="invalid_token"'])
  sendRec(req, res, users.get(req.url.slice(prefix.length)))
}
// BENCH_JOSE=1: the same server with jose doing the verification.
const useJose = process.env.BENCH_JOSE === '1' && (await import('jose'))
const joseKeys = useJose && {
  HS256: Buffer.from(K.HS256.secret, 'base64url'),
  EdDSA: await useJose.importJWK(K.EdDSA.public, 'EdDSA'),
  ES256: await useJose.importJWK(K.ES256.public, 'ES256'),
}
const securedJose = (prefix, alg) => async (req, res) => {
  const a = req.headers.authorization
  try {
    await useJose.jwtVerify(a.slice(7), joseKeys[alg], { algorithms: [alg], audience: 'bench' })
  } catch {
    return fail(res, 401, ['WWW-Authenticate', 'Bearer error="invalid_token"'])
  }
  sendRec(req, res, users.get(req.url.slice(prefix.length)))
}
const hs = (useJose ? securedJose : secured)('/hs256', 'HS256')
const ed = (useJose ? securedJose : secured)('/eddsa', 'EdDSA')
const es = (useJose ? securedJose : secured)('/es256', 'ES256')

function onRequest(req, res) {
  const url = req.url
  switch (req.method) {
    case 'HEAD':
    case 'GET': {
      const rec = users.get(url)
      if (rec !== undefined) return sendRec(req, res, rec)
      if (url.startsWith('/docs/')) return sendRec(req, res, docs.get(url))
      if (url === '/files/big.bin') return sendFile(req, res)
      if (url.startsWith('/users?limit=')) return collection(res, Number(url.slice(13)))
      if (url.startsWith('/hs256/')) return hs(req, res)
      if (url.startsWith('/eddsa/')) return ed(req, res)
      if (url.startsWith('/es256/')) return es(req, res)
      return fail(res, 404)
    }
    case 'POST':
      if (url === '/users') return post(req, res)
      if (url === '/uploads') return upload(req, res)
      if (url === '/forms') return form(req, res)
      return fail(res, 404)
    case 'PUT':
      return put(req, res)
    case 'PATCH':
      return patch(req, res)
    case 'OPTIONS':
      return options(req, res)
    default:
      return fail(res, 405, ['Allow', ALLOW_METHODS.join(', ')])
  }
}

ready(http.createServer(onRequest))
