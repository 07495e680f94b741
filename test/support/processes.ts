import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import type { StorePlace } from './sql-stores.ts'
import type { StoreJob } from './store-tasks.ts'

/** The program that does a job with a store, ready to be started any number of times. */
export interface StoreProgram {
  start(job: StoreJob): StoreProcess
  remove(): void
}

export interface StoreProcess {
  /** Its lines so far. */
  readonly lines: readonly string[]
  /** Fulfilled when it has written so many lines. */
  told(count: number): Promise<void>
  /** Ends it without a warning. */
  kill(): Promise<void>
  /** Fulfilled when it has ended by itself; rejected when it failed. */
  done(): Promise<void>
}

/** The program that serves a store, with a clock of its own. */
export interface ServiceProgram {
  /** @param offset milliseconds by which `Date` differs from the real time; it tells its port in its first line */
  start(place: StorePlace, offset: number): StoreProcess
  remove(): void
}

export async function buildStoreProgram(): Promise<StoreProgram> {
  const { file, remove } = await buildProgram('store-process.ts')
  return { start: (job) => watch(spawn(process.execPath, [file, JSON.stringify(job)])), remove }
}

/** @param entry the program: by default one without definitions */
export async function buildServiceProgram(entry = 'service-process.ts'): Promise<ServiceProgram> {
  const { file, remove } = await buildProgram(entry)
  return {
    start(place, offset) {
      const clock = `data:text/javascript,${encodeURIComponent(moveDate(offset))}`
      return watch(spawn(process.execPath, ['--import', clock, file, JSON.stringify(place)]))
    },
    remove,
  }
}

/** A module that moves `Date` for the whole process, as a wrong clock of the machine does. */
function moveDate(offset: number): string {
  return `const Real = Date
globalThis.Date = class extends Real {
  constructor(...parts) { if (parts.length === 0) super(Real.now() + ${offset}); else super(...parts) }
  static now() { return Real.now() + ${offset} }
}`
}

async function buildProgram(entry: string): Promise<{ readonly file: string; remove(): void }> {
  // Within the project, so that the program finds the packages that it imports.
  const caches = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))
  mkdirSync(caches, { recursive: true })
  const folder = mkdtempSync(join(caches, 'store-process-'))
  await build({
    config: false,
    entry: { program: fileURLToPath(new URL(entry, import.meta.url)) },
    format: 'esm',
    target: 'node20',
    outDir: folder,
    outExtension: () => ({ js: '.mjs' }),
    external: ['libsql', 'pg'],
    clean: false,
    dts: false,
    silent: true,
  })
  return {
    file: join(folder, 'program.mjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function watch(child: ChildProcess): StoreProcess {
  const lines: string[] = []
  let rest = ''
  let errors = ''
  let notify = (): void => {}
  // Also when it was killed: `close` comes after the last line has been read.
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop()!
    lines.push(...parts)
    notify()
  })
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  return {
    lines,
    async told(count) {
      const enough = new Promise<void>((resolve) => {
        notify = () => {
          if (lines.length >= count) resolve()
        }
        notify()
      })
      const ended = closed.then(() => {
        if (lines.length < count) throw new Error(`The process ended early:\n${errors}`)
      })
      await Promise.race([enough, ended])
    },
    async kill() {
      child.kill('SIGKILL')
      await closed
    },
    async done() {
      const [code] = await closed
      if (code !== 0) throw new Error(`The process failed:\n${errors}`)
    },
  }
}
