// A store of the files in a folder, read-only: what an existing folder of downloads needs to be served with ranges,
// validators and all the rest. Writing is left out; see custom-store for a store that is written to.
import { closeSync, fstatSync, openSync, read as readFile, statSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { HttpError } from 'http-resource-service'

const readChunk = promisify(readFile)
/** Ranges fit in a small buffer; whole files are read with fewer calls through a large one. */
const SMALL = 64 * 1024
const LARGE = 512 * 1024
const TYPES = { '.html': 'text/html; charset=utf-8', '.json': 'application/json', '.txt': 'text/plain; charset=utf-8' }

/**
 * @param {string} folder
 * @returns {import('http-resource-service').ResourceStore}
 */
export function fileStore(folder) {
  const small = createBufferPool(SMALL, 64)
  const large = createBufferPool(LARGE, 8)

  function fileOf(path) {
    const file = join(folder, path)
    // The service refuses ".." in targets; a store should not have to know that.
    return file.startsWith(folder + sep) && !file.includes('\0') ? file : undefined
  }

  /** Bytes `first` to `last` of the very file that was described before, or none. */
  async function* readBytes(file, version, first, last) {
    const descriptor = openSync(file, 'r')
    const pool = last - first < SMALL ? small : large
    const buffer = pool.take()
    try {
      if (versionOf(fstatSync(descriptor)) !== version) throw new Error(`${file} was replaced.`)
      for (let at = first; at <= last; ) {
        const { bytesRead } = await readChunk(descriptor, buffer, 0, Math.min(buffer.length, last - at + 1), at)
        if (bytesRead === 0) throw new Error(`${file} was cut short.`)
        at += bytesRead
        // The next chunk is asked for when this one has left, so the buffer may be filled again.
        yield bytesRead === buffer.length ? buffer : buffer.subarray(0, bytesRead)
      }
    } finally {
      closeSync(descriptor)
      pool.giveBack(buffer)
    }
  }

  return {
    read(path) {
      const file = fileOf(path)
      const stats = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false })
      if (stats?.isFile() !== true) return undefined
      const version = versionOf(stats)
      return {
        path,
        version,
        contentType: TYPES[extname(file)] ?? 'application/octet-stream',
        size: stats.size,
        lastModified: Math.trunc(stats.mtimeMs),
        body: { open: (first, last) => readBytes(file, version, first, last) },
      }
    },
    list: () => ({ items: [] }),
    write: refuse,
    create: refuse,
    remove: refuse,
  }
}

function versionOf({ ino, size, mtimeMs }) {
  return `${ino.toString(36)}-${size.toString(36)}-${mtimeMs.toString(36)}`
}

function refuse() {
  throw new HttpError(403, 'ERR_FORBIDDEN', { detail: 'These files are read-only.' })
}

/** Buffers that are used again: fresh memory costs more than reading a range into it. */
function createBufferPool(size, most) {
  const free = []
  return {
    take: () => free.pop() ?? Buffer.allocUnsafeSlow(size),
    giveBack(buffer) {
      if (free.length < most) free.push(buffer)
    },
  }
}
