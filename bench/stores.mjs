// The stores behind the benchmark: one of the library's own for items, files of a folder, and uploads kept as files.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { memoryStore } from '../dist/index.js'
import { fileStore } from '../examples/file-store.js'

/**
 * @param {string} kind memory, sqlite or postgres://...
 * @param {{ hasContents?: boolean }} [options] `hasContents`: SQLite keeps large content in files beside it
 */
export async function openItemStore(kind, { hasContents = false } = {}) {
  if (kind === 'memory') return { store: memoryStore() }
  if (kind === 'sqlite') {
    const [{ sqliteStore }, { fileContents }, { default: Database }] = await Promise.all([
      import('../dist/stores/sqlite.js'),
      import('../dist/contents/file.js'),
      import('libsql'),
    ])
    const folder = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'bench-sqlite-'))
    process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }))
    const options = hasContents ? { contents: fileContents({ directory: path.join(folder, 'contents') }) } : {}
    return { store: sqliteStore(new Database(path.join(folder, 'bench.db')), options) }
  }
  const [{ postgresStore }, { default: pg }] = await Promise.all([import('../dist/stores/postgres.js'), import('pg')])
  const pool = new pg.Pool({ connectionString: kind })
  await pool.query('drop schema public cascade; create schema public')
  return { store: postgresStore({ pool }) }
}

/** Items in `items.store`, `/files/...` from a folder, the files of uploads as files of another. */
export function composeStores(items, { filesDir, uploadPath, uploadsDir, keepsFiles }) {
  const files = fileStore(filesDir)
  const forms = createForms()
  const secured = /^\/(?:hs256|eddsa|es256)(?=\/)/
  return {
    read(location, options) {
      if (keepsFiles && location.startsWith('/files/')) return files.read(location.slice('/files'.length))
      const item = location.charCodeAt(1) === 0x75 /* u */ ? location : location.replace(secured, '')
      return items.store.read(item, options)
    },
    write: (location, content, options) => items.store.write(location, content, options),
    remove: (location, options) => items.store.remove(location, options),
    list: (collection, options) => items.store.list(collection, options),
    create(collection, content, options) {
      if (collection === '/forms') return forms.create(content)
      const related = (name) =>
        options.related(name).filter(({ content }) => {
          const isFile = typeof content.body === 'object' && content.body.file !== undefined
          if (isFile) fs.renameSync(content.body.file, uploadPath(Number(name)))
          return !isFile
        })
      return items.store.create(collection, content, options.related === undefined ? options : { ...options, related })
    },
    stage: (body) => writeUpload(body, path.join(uploadsDir, randomBytes(9).toString('base64url'))),
  }
}

/** What is sent to /forms is taken apart and counted, as the other servers do; it is not kept. */
function createForms() {
  let count = 0
  return {
    create(content) {
      const name = String(++count)
      const { contentType, body } = content(name)
      const path = `/forms/${name}`
      const resource = {
        path,
        version: name,
        contentType,
        size: Buffer.byteLength(body),
        body,
        lastModified: Date.now(),
      }
      return { outcome: 'created', resource }
    },
  }
}

const BATCH = 256 * 1024

/** Writes a stream to a file: chunks are gathered and leave together, while the next ones arrive. */
async function writeUpload(body, file) {
  const descriptor = fs.openSync(file, 'w')
  let batch = []
  let waiting = 0
  let size = 0
  let pending = Promise.resolve()
  const flush = () => {
    const chunks = batch
    const at = size
    size += waiting
    batch = []
    waiting = 0
    return new Promise((resolve, reject) => {
      fs.writev(descriptor, chunks, at, (error) => (error ? reject(error) : resolve()))
    })
  }
  try {
    for await (const chunk of body) {
      batch.push(chunk)
      waiting += chunk.length
      if (waiting < BATCH) continue
      await pending
      pending = flush()
      pending.catch(() => {})
    }
    await pending
    if (waiting > 0) await flush()
  } catch (error) {
    fs.rmSync(file, { force: true })
    throw error
  } finally {
    fs.closeSync(descriptor)
  }
  return { staged: true, size, file, discard: () => fs.rmSync(file, { force: true }) }
}
