// What every server here shares: settings, the plain store, keys, and the ready line.
import fs from 'node:fs'
import path from 'node:path'
import { docData, SEED_TIME, userData } from '../lib/data.mjs'

export const env = {
  users: Number(process.env.BENCH_USERS ?? 1000),
  docs: Number(process.env.BENCH_DOCS ?? 100),
  files: process.env.BENCH_FILES,
  uploads: process.env.BENCH_UPLOADS,
  keys: process.env.BENCH_KEYS ? JSON.parse(fs.readFileSync(process.env.BENCH_KEYS, 'utf8')) : {},
}

/**
 * A plain Map store with a version counter per record: what a team would write first.
 * A record is { data, version, etag, lastModified }.
 */
export class Store {
  constructor() {
    this.reset()
  }

  reset() {
    const lm = new Date(SEED_TIME).toUTCString()
    this.users = new Map()
    for (let id = 1; id <= env.users; id++)
      this.users.set(id, { data: userData(id), version: 1, etag: '"v1"', lastModified: lm })
    this.nextId = env.users + 1
    this.docs = new Map()
    for (let n = 0; n < env.docs; n++)
      this.docs.set(String(n), { data: docData(n), version: 1, etag: '"v1"', lastModified: lm })
    this.nextUpload = 1
  }

  touch(rec, data) {
    rec.data = data
    rec.version++
    rec.etag = `"v${rec.version}"`
    rec.lastModified = new Date().toUTCString()
    return rec
  }

  create(fields) {
    const id = this.nextId++
    const rec = { data: { ...fields, id }, version: 1, etag: '"v1"', lastModified: new Date().toUTCString() }
    this.users.set(id, rec)
    return rec
  }

  page(limit) {
    const out = []
    for (const rec of this.users.values()) {
      out.push(rec.data)
      if (out.length === limit) break
    }
    return out
  }
}

/** If-Match / If-None-Match list matching, strong or weak. */
export function etagMatches(header, etag, weak = false) {
  if (header === '*') return true
  if (header === etag) return weak || !etag.startsWith('W/')
  const strip = (t) => (weak && t.startsWith('W/') ? t.slice(2) : t)
  const want = strip(etag)
  return header.split(',').some((t) => strip(t.trim()) === want)
}

/** Uploads overwrite eight slots, so that the disk use stays bounded. */
export const uploadPath = (id) => path.join(env.uploads, `${process.env.BENCH_NAME ?? 'x'}-${id % 8}.bin`)

/** Counts the requests for the process that started this one. */
export function countRequests(server) {
  if (process.send === undefined) return
  let requests = 0
  server.on('request', () => requests++)
  process.on('message', () => process.send(requests))
}

export function ready(server) {
  countRequests(server)
  server.listen(0, '127.0.0.1', () => process.stdout.write(`ready ${server.address().port}\n`))
  process.on('SIGTERM', () => process.exit(0))
}

/** SIGUSR2 puts the seeded state back, so that fast servers do not pay for a larger heap. */
export function resettable(store) {
  process.on('SIGUSR2', () => {
    store.reset()
    if (globalThis.gc) globalThis.gc()
  })
  return store
}
