// What is measured, how it is asked for, and what an answer must be before it counts.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { call } from './client.mjs'
import { BIG_SIZE, docData, JSON_PATCH, MERGE_PATCH, makeTokens, multipartBody, ORIGIN, userData } from './data.mjs'

const JSON_T = { 'Content-Type': 'application/json' }
const isJson = (r) => assert.match(r.headers['content-type'] ?? '', /^application\/json\b/)
const json = (r) => {
  isJson(r)
  return JSON.parse(r.body)
}
const status = (r, ...want) => assert.ok(want.includes(r.status), `status ${r.status}, wanted ${want.join(' or ')}`)

/** Checks that fail here make a peer 'weaker' (still timed, marked) instead of unfit. */
async function soft(ctx, name, fn) {
  try {
    await fn()
  } catch {
    ctx.weak.push(name)
  }
}

async function checkItem(ctx, pathname, id = 7) {
  const r = await call(ctx.port, { path: pathname })
  status(r, 200)
  assert.deepEqual(json(r), userData(id))
  assert.equal(Number(r.headers['content-length']), r.body.length, 'Content-Length')
  assert.ok(r.headers.date, 'Date')
  assert.match(r.headers.etag ?? '', /^(W\/)?".*"$/, 'ETag')
  await soft(ctx, 'no Last-Modified', async () => assert.ok(r.headers['last-modified']))
  await soft(ctx, 'weak ETag', async () => assert.ok(!r.headers.etag.startsWith('W/')))
  return r
}

const ids = (n, max, seed = 1) => {
  const out = []
  let x = seed
  for (let i = 0; i < n; i++) {
    x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff
    out.push(1 + (x % max))
  }
  return out
}
const gets = (prefix, n, max, headers) =>
  ids(n, max).map((id) => ({ m: 'GET', p: `${prefix}/users/${id}`, h: headers }))

const W = {}

W.W1 = {
  title: 'GET item, about 190 B of JSON, 200',
  only: { h3: 1, 'json-server': 1, nginx: 1, auto: 1 },
  check: (ctx) => checkItem(ctx, '/users/7'),
  requests: () => gets('', 500, 1000),
}

W.W2 = {
  title: 'conditional GET, If-None-Match, 304',
  only: { h3: 1, 'json-server': 1, nginx: 1, auto: 1 },
  async check(ctx) {
    const a = await checkItem(ctx, '/users/7')
    const b = await call(ctx.port, { path: '/users/7', headers: { 'If-None-Match': a.headers.etag } })
    status(b, 304)
    assert.equal(b.body.length, 0)
    await soft(ctx, 'no ETag on 304', async () => assert.equal(b.headers.etag, a.headers.etag))
    const c = await call(ctx.port, { path: '/users/7', headers: { 'If-None-Match': '"nope"' } })
    status(c, 200)
    const d = await call(ctx.port, { path: '/users/7', headers: { 'If-None-Match': `"nope", ${a.headers.etag}` } })
    await soft(ctx, 'no If-None-Match list', async () => status(d, 304))
  },
  async requests(ctx) {
    const out = []
    for (const id of ids(60, 1000)) {
      const r = await call(ctx.port, { path: `/users/${id}` })
      out.push({ m: 'GET', p: `/users/${id}`, h: { 'If-None-Match': r.headers.etag } })
    }
    return out
  },
}

const RANGE = 64 * 1024
W.W3r = {
  title: 'GET range, 64 KiB of 16 MiB, 206',
  only: { nginx: 1 },
  async check(ctx) {
    const big = fs.readFileSync(path.join(ctx.files, 'big.bin'))
    for (const [from, to] of [
      [0, RANGE - 1],
      [5 * 1024 * 1024 + 13, 5 * 1024 * 1024 + 13 + RANGE - 1],
    ]) {
      const r = await call(ctx.port, { path: '/files/big.bin', headers: { Range: `bytes=${from}-${to}` } })
      status(r, 206)
      assert.equal(r.headers['content-range'], `bytes ${from}-${to}/${BIG_SIZE}`)
      assert.equal(Number(r.headers['content-length']), to - from + 1)
      assert.ok(r.body.equals(big.subarray(from, to + 1)), 'bytes of the range')
      await soft(ctx, 'no ETag', async () => assert.ok(r.headers.etag))
      await soft(ctx, 'no Last-Modified', async () => assert.ok(r.headers['last-modified']))
    }
    const many = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        call(ctx.port, { path: '/files/big.bin', headers: { Range: `bytes=${i * 100003}-${i * 100003 + RANGE - 1}` } }),
      ),
    )
    for (const [i, m] of many.entries()) {
      assert.ok(m.body.equals(big.subarray(i * 100003, i * 100003 + RANGE)), 'bytes of ranges asked for at once')
    }
    const r = await call(ctx.port, { path: '/files/big.bin', headers: { Range: `bytes=${BIG_SIZE}-` } })
    await soft(ctx, `unsatisfiable range gives ${r.status}`, async () => status(r, 416))
  },
  requests: () =>
    ids(200, 240, 3).map((k) => ({
      m: 'GET',
      p: '/files/big.bin',
      h: { Range: `bytes=${k * RANGE + 17}-${(k + 1) * RANGE + 16}` },
    })),
  mb: RANGE / 1e6,
}

W.W3f = {
  title: 'GET the whole 16 MiB file, 200',
  only: { nginx: 1 },
  connections: 4,
  async check(ctx) {
    const r = await call(ctx.port, { path: '/files/big.bin' })
    status(r, 200)
    assert.ok(r.body.equals(fs.readFileSync(path.join(ctx.files, 'big.bin'))), 'bytes of the file')
  },
  requests: () => [{ m: 'GET', p: '/files/big.bin' }],
  mb: BIG_SIZE / 1e6,
}

const { id: _id, ...newUser } = userData(1)
W.W4 = {
  title: 'POST JSON, create, 201',
  only: { h3: 1, 'json-server': 1 },
  reset: true,
  async check(ctx) {
    const r = await call(ctx.port, { method: 'POST', path: '/users', headers: JSON_T, body: JSON.stringify(newUser) })
    status(r, 201)
    const made = json(r)
    assert.ok(Number.isInteger(made.id))
    assert.deepEqual({ ...made, id: 0 }, { ...newUser, id: 0 })
    assert.match(r.headers.location ?? '', new RegExp(`/users/${made.id}$`))
    assert.deepEqual(json(await call(ctx.port, { path: `/users/${made.id}` })), made)
    const bad = await call(ctx.port, { method: 'POST', path: '/users', headers: JSON_T, body: '{"a":' })
    await soft(ctx, `malformed JSON gives ${bad.status}`, async () => status(bad, 400))
  },
  requests: () => [{ m: 'POST', p: '/users', h: JSON_T, b: JSON.stringify(newUser) }],
}

W.W5 = {
  title: 'PUT with the current If-Match, 200 or 204',
  only: { h3: 1, 'json-server': 1, nginx: 1 },
  cas: true,
  threads: 16,
  connections: 16,
  async check(ctx) {
    const a = await call(ctx.port, { path: '/users/9' })
    const body = JSON.stringify({ ...userData(9), note: 'changed' })
    const b = await call(ctx.port, {
      method: 'PUT',
      path: '/users/9',
      headers: { ...JSON_T, 'If-Match': a.headers.etag },
      body,
    })
    status(b, 200, 204)
    const c = await call(ctx.port, { path: '/users/9' })
    assert.equal(JSON.parse(c.body).note, 'changed')
    await soft(ctx, 'no ETag on PUT', async () => assert.equal(b.headers.etag, c.headers.etag))
    await soft(ctx, 'If-Match not enforced', async () => {
      assert.notEqual(a.headers.etag, c.headers.etag)
      const d = await call(ctx.port, {
        method: 'PUT',
        path: '/users/9',
        headers: { ...JSON_T, 'If-Match': a.headers.etag },
        body,
      })
      status(d, 412)
    })
  },
  async requests(ctx) {
    const out = []
    for (let id = 101; id <= 116; id++) {
      const r = await call(ctx.port, { path: `/users/${id}` })
      out.push({
        m: 'PUT',
        p: `/users/${id}`,
        h: JSON_T,
        b: JSON.stringify(userData(id)),
        tag: ctx.weak.includes('If-Match not enforced') ? undefined : r.headers.etag,
      })
    }
    return out
  },
}

function patchLoad(type, patch, check) {
  return {
    async check(ctx) {
      const r = await call(ctx.port, {
        method: 'PATCH',
        path: '/docs/3',
        headers: { 'Content-Type': type },
        body: JSON.stringify(patch),
      })
      status(r, 200)
      const { id, ...doc } = json(r) // json-server insists on an id
      check(doc, ctx)
      const g = await call(ctx.port, { path: '/docs/3' })
      assert.deepEqual(JSON.parse(g.body), JSON.parse(r.body))
      await soft(ctx, 'no ETag', async () => assert.ok(r.headers.etag))
    },
    requests: () =>
      Array.from({ length: 50 }, (_, i) => ({
        m: 'PATCH',
        p: `/docs/${i + 10}`,
        h: { 'Content-Type': type },
        b: JSON.stringify(patch),
      })),
  }
}
W.W6m = {
  title: 'PATCH merge-patch on 2 KB, 200 with the document',
  only: { 'json-server': 1 },
  ...patchLoad('application/merge-patch+json', MERGE_PATCH, (doc, ctx) => {
    const d = docData(3)
    const want = {
      ...d,
      status: 'published',
      meta: { ...d.meta, revision: 8, flags: { a: true, b: true, c: null } },
      totals: { count: 8, sum: 43, mean: 5.25 },
    }
    try {
      assert.deepEqual(doc, want)
    } catch (e) {
      if (ctx.peer !== 'json-server') throw e
      ctx.weak.push('shallow merge')
    }
  }),
}
W.W6j = {
  title: 'PATCH json-patch, 5 operations on 2 KB, 200 with the document',
  ...patchLoad('application/json-patch+json', JSON_PATCH, (doc) => {
    const d = docData(3)
    assert.deepEqual(doc, {
      ...d,
      status: 'published',
      tags: ['urgent', ...d.tags.slice(0, 4)],
      meta: { ...d.meta, revision: 42 },
    })
  }),
}
{
  const base = W.W6j.check
  W.W6j.check = async (ctx) => {
    await base(ctx)
    const before = await call(ctx.port, { path: '/docs/4' })
    const r = await call(ctx.port, {
      method: 'PATCH',
      path: '/docs/4',
      headers: { 'Content-Type': 'application/json-patch+json' },
      body: JSON.stringify([
        { op: 'replace', path: '/status', value: 'x' },
        { op: 'test', path: '/title', value: 'no' },
      ]),
    })
    assert.ok(r.status >= 400 && r.status < 500, `failed test gives ${r.status}`)
    assert.ok((await call(ctx.port, { path: '/docs/4' })).body.equals(before.body), 'atomic')
  }
}

W.W7 = {
  title: 'CORS preflight, 204',
  async check(ctx) {
    const r = await call(ctx.port, {
      method: 'OPTIONS',
      path: '/users/7',
      headers: {
        Origin: ORIGIN,
        'Access-Control-Request-Method': 'PATCH',
        'Access-Control-Request-Headers': 'content-type,authorization',
      },
    })
    status(r, 204)
    assert.equal(r.headers['access-control-allow-origin'], ORIGIN)
    assert.match(r.headers['access-control-allow-methods'] ?? '', /PATCH/)
    assert.match(r.headers['access-control-allow-headers'] ?? '', /authorization/i)
    assert.equal(r.headers['access-control-max-age'], '86400')
    const evil = await call(ctx.port, {
      method: 'OPTIONS',
      path: '/users/7',
      headers: { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'PATCH' },
    })
    assert.notEqual(evil.headers['access-control-allow-origin'], 'https://evil.example')
    assert.notEqual(evil.headers['access-control-allow-origin'], '*')
  },
  requests: () => [
    {
      m: 'OPTIONS',
      p: '/users/7',
      h: {
        Origin: ORIGIN,
        'Access-Control-Request-Method': 'PATCH',
        'Access-Control-Request-Headers': 'content-type,authorization',
      },
    },
  ],
}

W.W8L = {
  title: 'multipart upload of 64 MiB, streamed to a file, 202',
  upload: { path: '/uploads', mib: 64, connections: 2 },
  async check(ctx) {
    const mp = multipartBody({ fields: { title: 'T' }, fileSize: 3 * 1024 * 1024 + 17 })
    const r = await call(ctx.port, {
      method: 'POST',
      path: '/uploads',
      headers: { 'Content-Type': mp.contentType },
      body: mp.body,
    })
    status(r, 202)
    assert.match(r.headers.location ?? '', /\/uploads\/\d+$/)
    const id = Number(r.headers.location.split('/').pop())
    const stored = fs.readFileSync(path.join(ctx.uploads, `${ctx.peer}-${id % 8}.bin`))
    assert.ok(stored.equals(mp.file), 'stored bytes')
  },
  mb: (64 * 1024 * 1024) / 1e6,
}

W.W8s = {
  title: 'small multipart: 2 fields and a 10 KB file, in memory, 201',
  async check(ctx) {
    const mp = multipartBody({ fields: { title: 'A title', note: 'A note' }, fileSize: 10240 })
    const r = await call(ctx.port, {
      method: 'POST',
      path: '/forms',
      headers: { 'Content-Type': mp.contentType },
      body: mp.body,
    })
    status(r, 201)
    const { id, ...rest } = json(r)
    assert.ok(Number.isInteger(id))
    assert.deepEqual(rest, { title: 'A title', note: 'A note', file: { name: 'upload.bin', size: 10240 } })
  },
  requests() {
    const mp = multipartBody({ fields: { title: 'A title', note: 'A note' }, fileSize: 10240 })
    return [{ m: 'POST', p: '/forms', h: { 'Content-Type': mp.contentType }, b: mp.body.latin1Slice() }]
  },
}

function auth(alg) {
  const p = `/${alg.toLowerCase()}`
  return {
    title: `GET item with a ${alg} bearer JWT, verified on every request`,
    only: { jose: 1 },
    async check(ctx) {
      const [t] = makeTokens(alg, ctx.keys, 1)
      await checkItem({ ...ctx, weak: [], port: ctx.port }, `${p}/users/7`).then(
        () => assert.fail('open without a token'),
        (e) => {
          if (/open without/.test(e.message)) throw e
        },
      )
      const ok = await call(ctx.port, { path: `${p}/users/7`, headers: { Authorization: `Bearer ${t}` } })
      status(ok, 200)
      assert.deepEqual(json(ok), userData(7))
      const none = await call(ctx.port, { path: `${p}/users/7` })
      status(none, 401)
      assert.match(none.headers['www-authenticate'] ?? '', /^Bearer/)
      const [h, b, s] = t.split('.')
      for (const bad of [
        `${h}.${b}.${s.slice(0, -6)}AAAAAA`,
        `${Buffer.from('{"alg":"none"}').toString('base64url')}.${b}.`,
        'x',
      ]) {
        status(await call(ctx.port, { path: `${p}/users/7`, headers: { Authorization: `Bearer ${bad}` } }), 401)
      }
    },
    requests(ctx) {
      const t = makeTokens(alg, ctx.keys, 500)
      return ids(500, 1000).map((id, i) => ({
        m: 'GET',
        p: `${p}/users/${id}`,
        h: { Authorization: `Bearer ${t[i]}` },
      }))
    },
  }
}
W.W9hs = auth('HS256')
W.W9ed = auth('EdDSA')
W.W9es = auth('ES256')

for (const [k, n] of [
  ['a', 1e3],
  ['b', 1e5],
  ['c', 1e6],
]) {
  W[`W10${k}`] = {
    title: `GET item among ${n.toLocaleString('en')} resources, picked at random`,
    users: n,
    check: (ctx) => checkItem(ctx, '/users/7'),
    requests: () => gets('', 20000, n),
  }
}
W.W10p = {
  title: 'GET collection, first page of 50 of 100,000',
  users: 1e5,
  async check(ctx) {
    const r = await call(ctx.port, { path: '/users?limit=50' })
    status(r, 200)
    const v = json(r)
    const list = Array.isArray(v) ? v : Object.values(v).find(Array.isArray)
    assert.equal(list.length, 50)
    assert.deepEqual(list[0], userData(1))
    assert.deepEqual(list[49], userData(50))
  },
  requests: () => [{ m: 'GET', p: '/users?limit=50' }],
}

// How costs grow: one thing is made larger, everything else stays.
for (const [k, n] of [
  ['a', 1],
  ['b', 64],
  ['c', 512],
]) {
  W[`G1${k}`] = {
    title: `growth: GET item over ${n} connections`,
    connections: n,
    check: (ctx) => checkItem(ctx, '/users/7'),
    requests: () => gets('', 500, 1000),
  }
}
for (const [k, kb] of [
  ['a', 1],
  ['b', 16],
  ['c', 256],
]) {
  const body = (id) =>
    JSON.stringify({
      ...userData(id),
      list: Array.from({ length: kb * 16 }, (_, i) =>
        `a value of an array member, no. ${String(i).padStart(6, '0')} ....................`.slice(0, 61),
      ),
    })
  W[`G2${k}`] = {
    title: `growth: PUT of ${kb} KB of JSON, no condition`,
    async check(ctx) {
      const r = await call(ctx.port, { method: 'PUT', path: '/users/9', headers: JSON_T, body: body(9) })
      status(r, 200, 204)
      const g = JSON.parse((await call(ctx.port, { path: '/users/9' })).body)
      assert.equal(g.id, 9)
      await soft(ctx, 'GET drops members outside its schema', async () => assert.deepEqual(g, JSON.parse(body(9))))
    },
    requests: () => [21, 22, 23, 24].map((id) => ({ m: 'PUT', p: `/users/${id}`, h: JSON_T, b: body(id) })),
    mb: kb / 1000,
  }
}
for (const [k, n] of [
  ['a', 1],
  ['b', 20],
  ['c', 200],
]) {
  W[`G3${k}`] = {
    title: `growth: If-None-Match with ${n} entity tags, the last one matches`,
    only: { nginx: 1 },
    async tags(ctx) {
      const r = await call(ctx.port, { path: '/users/7' })
      return [...Array.from({ length: n - 1 }, (_, i) => `"other-${i}"`), r.headers.etag].join(', ')
    },
    async check(ctx) {
      status(await call(ctx.port, { path: '/users/7', headers: { 'If-None-Match': await this.tags(ctx) } }), 304)
    },
    async requests(ctx) {
      return [{ m: 'GET', p: '/users/7', h: { 'If-None-Match': await this.tags(ctx) } }]
    },
  }
}
for (const [k, mib] of [
  ['a', 8],
  ['b', 256],
]) {
  W[`G4${k}`] = {
    ...W.W8L,
    title: `growth: multipart upload of ${mib} MiB, streamed`,
    upload: { path: '/uploads', mib, connections: 1 },
    mb: (mib * 1024 * 1024) / 1e6,
  }
}

export const workloads = W
for (const [k, w] of Object.entries(W)) w.id = k
