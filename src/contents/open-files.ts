import { close, open } from 'node:fs'
import { promisify } from 'node:util'

/** Runs a task when its turn has come. */
type InTurn = <Result>(task: () => Promise<Result>) => Promise<Result>

/**
 * Runs a few tasks at a time; the others wait in the order in which they came.
 * @param most tasks at a time
 */
export function createInTurn(most: number): InTurn {
  const waiting = new Set<() => void>()
  let running = 0

  function passOn(): void {
    const [next] = waiting
    if (next === undefined) {
      running--
      return
    }
    waiting.delete(next)
    next()
  }

  return async (task) => {
    if (running < most) running++
    else await new Promise<void>((resolve) => waiting.add(resolve))
    try {
      return await task()
    } finally {
      passOn()
    }
  }
}

/** A file that is open for reading, for as many readers as want it. */
interface OpenFile {
  readonly descriptor: number
  readonly name: string
  readers: number
  /** Whether it was acquired since the last look. */
  isUsed: boolean
}

/** Files that stay open without a reader. A further file is closed by its last reader. */
const MOST = 64
/** Milliseconds between two looks: a file stays open for one to two of them after its last use. */
const INTERVAL = 1000

const openDescriptor = promisify(open)

/**
 * Keeps files open for a moment after they were read, because to open and to close one costs more than to read 64 KiB of
 * it: a range took 168 us, and takes 80.
 * @param flags as `fs.open` takes them
 * @param inTurn limits how many files are opened at a time
 */
export function createOpenFiles(flags: number, inTurn: InTurn) {
  const shared = new Map<string, OpenFile>()
  let timer: NodeJS.Timeout | undefined

  function closeUnused(): void {
    for (const file of shared.values()) {
      if (file.readers === 0 && !file.isUsed) drop(file)
      file.isUsed = false
    }
    if (shared.size > 0) timer?.refresh()
    else timer = undefined
  }

  function drop(file: OpenFile): void {
    if (shared.get(file.name) === file) shared.delete(file.name)
    // A file that was only read loses nothing when it cannot be closed.
    if (file.readers === 0) close(file.descriptor, () => {})
  }

  function share(file: OpenFile): OpenFile {
    file.readers++
    file.isUsed = true
    return file
  }

  async function openFile(name: string): Promise<OpenFile> {
    // Another reader may have opened it while this one waited for its turn.
    const known = shared.get(name)
    if (known !== undefined) return share(known)
    const descriptor = await openDescriptor(name, flags)
    const file = { descriptor, name, readers: 1, isUsed: true }
    // Or during its turn: then this one closes its own.
    if (shared.size < MOST && !shared.has(name)) {
      shared.set(name, file)
      timer ??= setTimeout(closeUnused, INTERVAL).unref()
    }
    return file
  }

  return {
    /** Opens a file, or shares it with the readers that have it. `release` follows in any case. */
    acquire(name: string): OpenFile | Promise<OpenFile> {
      const file = shared.get(name)
      return file === undefined ? inTurn(() => openFile(name)) : share(file)
    },

    release(file: OpenFile): void {
      file.readers--
      if (file.readers === 0 && shared.get(file.name) !== file) drop(file)
    },

    /** A file that is removed: it is closed as soon as its last reader has released it. */
    forget(name: string): void {
      const file = shared.get(name)
      if (file !== undefined) drop(file)
    },
  }
}
