import { constants, read as readDescriptor } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { HttpError } from '../core/errors.ts'
import { hold } from '../core/held-file.ts'
import { isPromise } from '../core/maybe-promise.ts'
import { required, TEXT } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createUnavailableError, isOverQuota } from '../core/unavailable.ts'
import { createInTurn, createOpenFiles } from './open-files.ts'
import { type ContentStore, checkKey, createGoneError, type ListedContent } from './types.ts'

export type { ContentStore, ListedContent, LocateRequest, PutContent } from './types.ts'

/** Options of `fileContents`. It needs `directory`. */
export interface FileContentsOptions {
  /**
   * The directory that holds the files, on a file system that all processes of the store share. Made when it is missing.
   * Required.
   */
  readonly directory: string
}

const OPTIONS = { directory: required(TEXT) } satisfies OptionTable<FileContentsOptions>

/** Bytes that are read at a time: 16 MiB cost 1.9 times as much with 64 KiB. */
const CHUNK = 256 * 1024
/** Files that are opened at a time: requests that end while they wait for their turn open none. */
const MOST_OPENING = 16
/** Nothing is read through a symbolic link, and no named pipe is waited for. Windows has neither flag. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
/** EFBIG: beyond the largest file of the file system, or of the process (`ulimit -f`). */
const FULL: readonly unknown[] = ['ENOSPC', 'EFBIG']
const BUSY: readonly unknown[] = ['EMFILE', 'ENFILE', 'EAGAIN']
/** The file system is one of a network, or of FUSE, and it is away. */
const AWAY: readonly unknown[] = ['ENOTCONN', 'ECONNABORTED', 'ESTALE', 'ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH']
const FOLDER = /^[0-9a-f]{2}$/
const NAME = /^([0-9a-f]{16,100})(\.part)?$/

/**
 * Keeps large content as files, each in one of 256 folders of a directory. A file is written under a temporary name,
 * synchronized with its folder and renamed, so that a file under its own name is always whole.
 * @throws TypeError for an unknown option or a missing directory
 * @example
 * const store = sqliteStore(database, { contents: fileContents({ directory: './contents' }) })
 */
export function fileContents(options: FileContentsOptions): ContentStore {
  const directory = resolve(resolveOptions('fileContents', options, OPTIONS).directory)
  /** Folders that this process has found durable: at most 256. */
  const folders = new Set<string>()
  /** The uppermost folder that was made for the directory, until its name and those below it are durable. */
  let made: string | undefined
  let making: Promise<void> | undefined
  const inTurn = createInTurn(MOST_OPENING)
  const files = createOpenFiles(READ, inTurn)

  // The last digits: the first ones are the same for all contents of a store.
  const folderOf = (key: string): string => join(directory, checkKey(key).slice(-2))
  const fileOf = (key: string): string => join(folderOf(key), key)

  async function makeDirectory(): Promise<void> {
    made = (await mkdir(directory, { recursive: true, mode: 0o700 })) ?? made
    for (let above = directory; made !== undefined && above.length >= made.length; ) {
      above = dirname(above)
      await synchronize(above)
    }
    made = undefined
  }

  async function makeFolder(folder: string): Promise<void> {
    if (folders.has(folder)) return
    // Together with others: none finds what another has made and not yet synchronized.
    making ??= makeDirectory().finally(() => {
      making = undefined
    })
    await making
    // Not recursive: that reports a full disk as ENOENT.
    await mkdir(folder, 0o700).catch(ignorePresent)
    // Also when it was there: another process may have made it and not yet synchronized it.
    await synchronize(directory)
    folders.add(folder)
  }

  async function openPart(folder: string, part: string): Promise<FileHandle> {
    await makeFolder(folder)
    try {
      return await open(part, 'wx', 0o600)
    } catch (error) {
      ignoreAbsent(error)
      // The folder was removed after it was made.
      folders.delete(folder)
      await makeFolder(folder)
      return open(part, 'wx', 0o600)
    }
  }

  async function write(file: FileHandle, body: AsyncIterable<Uint8Array>): Promise<number> {
    const close = hold(file)
    try {
      for await (const chunk of body) {
        for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at, chunk.length - at)).bytesWritten
      }
      await file.sync()
      return (await file.stat()).size
    } finally {
      await close()
    }
  }

  return {
    async put(key, body, { signal } = {}) {
      const folder = folderOf(key)
      const name = fileOf(key)
      const part = `${name}.part`
      try {
        signal?.throwIfAborted()
        const size = await write(await openPart(folder, part), body)
        signal?.throwIfAborted()
        await rename(part, name)
        await synchronize(folder)
        return { size }
      } catch (error) {
        await removeFile(part).catch(() => {})
        throw toHttpError(error)
      }
    },

    async *open(key, first, last, { signal } = {}) {
      const name = fileOf(key)
      // A client may reset requests faster than files are opened: none stays open for a request that is gone.
      const file = await inTurn(async () => {
        signal?.throwIfAborted()
        return open(name, READ).catch(refuseAbsent)
      })
      const close = hold(file)
      try {
        signal?.throwIfAborted()
        const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK, last - first + 1))
        for (let at = first; at <= last; ) {
          const length = Math.min(buffer.length, last - at + 1)
          const { bytesRead } = await file.read(buffer, 0, length, at).catch(refuseAbsent)
          if (bytesRead === 0) return
          at += bytesRead
          yield bytesRead === buffer.length ? buffer : buffer.subarray(0, bytesRead)
        }
      } finally {
        await close()
      }
    },

    async read(key, first, last, { buffer = Buffer.allocUnsafeSlow(last - first + 1) } = {}) {
      const acquired = files.acquire(fileOf(key))
      const file = isPromise(acquired) ? await acquired.catch(refuseAbsent) : acquired
      let count = 0
      try {
        // A network file system may give less than it was asked for.
        for (let got = -1; got !== 0 && count <= last - first; count += got) {
          got = await readAt(file.descriptor, buffer, count, first + count, last)
        }
        return buffer.subarray(0, count)
      } finally {
        // A whole file may be put back under its name: the next reader opens it.
        if (count <= last - first) files.forget(fileOf(key))
        files.release(file)
      }
    },

    async remove(key) {
      files.forget(fileOf(key))
      await removeFile(fileOf(key))
      await removeFile(`${fileOf(key)}.part`)
    },

    async *list() {
      for await (const folder of readNames(directory)) {
        if (FOLDER.test(folder)) yield* listFolder(join(directory, folder))
      }
    },
  }
}

async function* listFolder(folder: string): AsyncGenerator<ListedContent> {
  for await (const name of readNames(folder)) {
    const key = NAME.exec(name)?.[1]
    const file = join(folder, name)
    const found = key === undefined ? undefined : await lstat(file).catch(ignoreAbsent)
    if (key === undefined || found?.isFile() !== true) continue
    yield { key, age: Date.now() - found.mtimeMs, remove: () => removeFile(file) }
  }
}

async function* readNames(folder: string): AsyncGenerator<string> {
  const entries = await opendir(folder).catch(ignoreAbsent)
  if (entries === undefined) return
  for await (const { name } of entries) yield name
}

function readAt(descriptor: number, buffer: Uint8Array, at: number, first: number, last: number): Promise<number> {
  return new Promise((resolve, reject) => {
    readDescriptor(descriptor, buffer, at, last - first + 1, first, (error, count) => {
      if (error === null) resolve(count)
      else reject(toHttpError(error))
    })
  })
}

async function removeFile(name: string): Promise<void> {
  await unlink(name).catch(ignoreAbsent)
}

/** Makes the names in a folder durable. */
async function synchronize(folder: string): Promise<void> {
  // Windows cannot open a folder, and keeps its names durable by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync().catch((error: NodeJS.ErrnoException) => {
      // A file system that cannot do so: some of a network, and of FUSE. It keeps names durable in its own way.
      if (error.code !== 'EINVAL') throw error
    })
  } finally {
    await handle.close()
  }
}

function refuseAbsent(error: unknown): never {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw createGoneError(error)
  throw toHttpError(error)
}

function ignoreAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}

function ignorePresent(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
}

function toHttpError(error: unknown): unknown {
  const { code, syscall } = (error ?? {}) as { code?: unknown; syscall?: unknown }
  // The error of the source may have a code as well.
  if (syscall === undefined) return error
  if (FULL.includes(code) || isOverQuota(error)) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  // The directory is gone, and is made again by the next put. Or the process stood still for longer than `grace`, or the
  // clock was put forward: the sweep has removed the part.
  const isGone = code === 'ENOENT'
  if (isGone || BUSY.includes(code) || AWAY.includes(code)) return createUnavailableError(error)
  return error
}
