// A read-only store of the files in a folder: it serves an existing folder of downloads with ranges and validators.
// custom-store.js is a store that is written to.
import { closeSync, fstatSync, openSync, read as readFile, statSync } from 'node:fs'
import { extname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { HttpError } from 'http-resource-service'

const readChunk = promisify(readFile)
/** Bytes that are read at a time. */
const CHUNK = 512 * 1024
/** Files that are kept open. */
const MOST_OPEN = 64
const TYPES = { '.html': 'text/html; charset=utf-8', '.json': 'application/json', '.txt': 'text/plain; charset=utf-8' }

/**
 * @param {string} folder
 * @returns {import('http-resource-service').ResourceStore}
 */
export function fileStore(folder) {
  const root = join(resolve(folder), '/')
  const pool = createBufferPool(CHUNK, 8)
  /** By path: the same object for the same state, so that what the service derives from it is derived once. */
  const states = new Map()

  function fileOf(path) {
    const file = join(root, path)
    // The service refuses ".." in targets; the store does not rely on it.
    return file.startsWith(root) && !file.includes('\0') ? file : undefined
  }

  function forget(path) {
    states.get(path)?.retire()
    states.delete(path)
  }

  function remember(path, state) {
    forget(path)
    if (states.size === MOST_OPEN) forget(states.keys().next().value)
    states.set(path, state)
  }

  return {
    read(path) {
      const known = states.get(path)
      const file = known?.file ?? fileOf(path)
      const stats = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false })
      if (stats?.isFile() !== true) {
        forget(path)
        return undefined
      }
      if (known !== undefined && isSame(known.stats, stats)) return known.resource
      const state = createState(path, file, stats, pool)
      remember(path, state)
      return state.resource
    },
    list: () => ({ items: [] }),
    write: refuse,
    create: refuse,
    remove: refuse,
    close() {
      for (const path of states.keys()) forget(path)
    },
  }
}

/** One state of a file: what the service gets of it, and a descriptor that its readers share. */
function createState(path, file, stats, pool) {
  let descriptor
  let readers = 0
  let isRetired = false

  /** Opens the file, if it still is the one that was described. */
  function open() {
    if (descriptor === undefined) {
      const opened = openSync(file, 'r')
      if (!isSame(fstatSync(opened), stats)) {
        closeSync(opened)
        throw new Error(`${file} was replaced.`)
      }
      descriptor = opened
    }
    readers++
    return descriptor
  }

  function close() {
    readers--
    closeIfUnused()
  }

  function closeIfUnused() {
    if (descriptor === undefined || readers > 0 || !isRetired) return
    closeSync(descriptor)
    descriptor = undefined
  }

  async function* readBytes(first, last) {
    const from = open()
    const buffer = pool.take()
    try {
      for (let at = first; at <= last; ) {
        const { bytesRead } = await readChunk(from, buffer, 0, Math.min(buffer.length, last - at + 1), at)
        if (bytesRead === 0) throw new Error(`${file} was cut short.`)
        at += bytesRead
        // The service asks for the next chunk when it has sent this one, so the buffer may be filled again.
        yield bytesRead === buffer.length ? buffer : buffer.subarray(0, bytesRead)
      }
    } finally {
      pool.giveBack(buffer)
      close()
    }
  }

  /** A short range, in one piece. The service brings the buffer. */
  async function readShort(first, last, { buffer = Buffer.alloc(last - first + 1) } = {}) {
    const from = open()
    try {
      const { bytesRead } = await readChunk(from, buffer, 0, last - first + 1, first)
      return buffer.subarray(0, bytesRead)
    } finally {
      close()
    }
  }

  return {
    file,
    stats,
    resource: {
      path,
      version: `${stats.ino.toString(36)}-${stats.size.toString(36)}-${stats.mtimeMs.toString(36)}`,
      contentType: TYPES[extname(file)] ?? 'application/octet-stream',
      size: stats.size,
      lastModified: Math.trunc(stats.mtimeMs),
      body: { open: readBytes, read: readShort },
    },
    retire() {
      isRetired = true
      closeIfUnused()
    },
  }
}

function isSame(a, b) {
  return a.mtimeMs === b.mtimeMs && a.size === b.size && a.ino === b.ino
}

function refuse() {
  throw new HttpError(403, 'ERR_FORBIDDEN', { detail: 'These files are read-only.' })
}

/** Buffers that are used again: fresh memory costs more than reading a file into it. */
function createBufferPool(size, most) {
  const free = []
  return {
    take: () => free.pop() ?? Buffer.allocUnsafeSlow(size),
    giveBack(buffer) {
      if (free.length < most) free.push(buffer)
    },
  }
}
