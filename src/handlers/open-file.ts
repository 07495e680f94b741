import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { KnownState } from './validators.ts'

const CHUNK = 64 * 1024

/** What a path may turn out to be when it names no file. */
const ABSENT: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP', 'ENXIO']

/**
 * Opens a file as a representation for `range`. It is opened once, so the answer is of one version although the file
 * may be replaced by renaming meanwhile, and closed when the answer has left.
 *
 * Last-Modified is the file's own date. There is no ETag unless you give one: size and date do not tell every change.
 * @param path a path of your own; one made of a request has to be checked before
 * @param fields Content-Type and whatever else `range` takes beside the content
 * @returns `undefined` when there is no file, or something that is not a regular file
 * @throws the error of the file system for a file that cannot be opened
 * @example
 * createServer(range(() => openFile('film.mp4', { contentType: 'video/mp4' }))).listen(8080)
 */
export async function openFile(
  path: string | URL,
  fields: Omit<RangeSource, 'content'>,
): Promise<RangeSource | undefined> {
  // Opening a named pipe would otherwise wait for its other end.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(ignoreAbsent)
  if (file === undefined) return undefined
  try {
    const stat = await file.stat()
    if (stat.isFile()) return { lastModified: stat.mtimeMs, ...fields, content: createReader(file, stat.size) }
    await file.close()
    return undefined
  } catch (error) {
    await file.close()
    throw error
  }
}

function ignoreAbsent(error: unknown): undefined {
  if (!ABSENT.includes((error as NodeJS.ErrnoException).code)) throw error
}

function createReader(file: FileHandle, size: number): RangeReader {
  return {
    size,
    async *open(first, last) {
      // The writer asks for a chunk when the one before has left: one buffer is enough.
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, last - first + 1))
      for (let at = first; at <= last; ) {
        const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, last - at + 1), at)
        // Truncated since: the answer breaks off.
        if (bytesRead === 0) return
        yield buffer.subarray(0, bytesRead)
        at += bytesRead
      }
    },
    close: () => file.close(),
  }
}

/** A representation of which any part can be sent. */
export interface RangeSource extends KnownState {
  /** Content-Type. */
  readonly contentType: string
  /** The content: in memory, or a way to read a part of it. */
  readonly content: string | Uint8Array | RangeReader
  /**
   * The SHA-256 digest of a content that is read in parts, 32 bytes: behind `digestFields` answers carry it where a
   * request wants one. Default: none, and such answers have no Repr-Digest.
   */
  readonly sha256?: Uint8Array | undefined
}

/** Content that is read in parts, all of them of one version, whatever happens to it meanwhile. */
export interface RangeReader {
  /** Length in bytes. */
  readonly size: number
  /** Reads bytes `first` to `last`, both inclusive. Called once for each part, and not at all for HEAD, 304 and 416. */
  open(first: number, last: number): AsyncIterable<Uint8Array>
  /** Called once, when nothing more will be read: after the answer, or when the client has gone away. */
  close?(): unknown
}
