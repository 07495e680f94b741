// The slot for our own library. PROJECT_DIR names its folder; see README.md for what it must hold.
import http from 'node:http'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { ALLOW_HEADERS, ALLOW_METHODS, docData, MAX_AGE, ORIGIN, SEED_TIME, userData } from '../lib/data.mjs'
import { env, ready, uploadPath } from './_lib.mjs'

const dir = process.env.PROJECT_DIR
if (!dir) throw new Error('set PROJECT_DIR to the folder of the library')
const entry = path.resolve(dir, process.env.PROJECT_ENTRY ?? 'bench/adapter.mjs')
const adapter = await import(pathToFileURL(entry))
const mount = process.env.PROJECT_MOUNT ?? 'node'
const ctx = {
  mount,
  users: { count: env.users, data: userData },
  docs: { count: env.docs, data: docData },
  seedTime: SEED_TIME,
  filesDir: env.files,
  uploadsDir: env.uploads,
  uploadPath,
  keys: env.keys,
  cors: { origin: ORIGIN, methods: ALLOW_METHODS, headers: ALLOW_HEADERS, maxAge: MAX_AGE },
}
const made = await (adapter.default ?? adapter.createBench)(ctx)
ready(typeof made === 'function' ? http.createServer(made) : made)
