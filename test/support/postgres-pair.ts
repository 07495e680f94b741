import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type PausableProxy, startProxy } from './pausable-proxy.ts'
import { findFreePort, type PostgresServer, startPostgres } from './postgres.ts'

/** A primary with a synchronous standby, and the address of whichever of them is the primary. */
export interface PostgresPair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** The port that a service is given. It stays when the standby takes over. */
  readonly port: number
  /** Makes the standby the primary, as a failover manager does once the primary is dead. */
  promote(): Promise<void>
  stop(): Promise<void>
}

const STANDBY = 'standby'

export async function startPostgresPair(): Promise<PostgresPair> {
  const primary = await startPostgres({ settings: [`synchronous_standby_names=${STANDBY}`] })
  // A copy of the data of a server that is shut down needs no pg_basebackup.
  await primary.shutDown()
  const standby = await startPostgres({
    settings: [
      `primary_conninfo=host=127.0.0.1 port=${primary.port} user=postgres application_name=${STANDBY}`,
      'wal_retrieve_retry_interval=100ms',
    ],
    fill(data) {
      cpSync(primary.data, data, { recursive: true })
      writeFileSync(join(data, 'standby.signal'), '')
    },
  })
  await primary.restart()
  await untilSynchronous(primary)
  const address: PausableProxy = await startProxy(primary.port)

  return {
    primary,
    standby,
    port: address.port,
    async promote() {
      await standby.createPool({ max: 1 }).query('SELECT pg_promote()')
      address.pointTo(standby.port)
    },
    async stop() {
      await address.close()
      await standby.stop()
      await primary.stop()
    },
  }
}

async function untilSynchronous(primary: PostgresServer): Promise<void> {
  const pool = primary.createPool({ max: 1 })
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(50)) {
    const { rows } = await pool.query<{ sync_state: string }>('SELECT sync_state FROM pg_stat_replication')
    if (rows[0]?.sync_state === 'sync') {
      // It is about to be killed.
      await pool.end()
      return
    }
  }
  throw new Error('The standby did not connect to the primary within 20 s.')
}

export interface Pooler {
  readonly port: number
  stop(): Promise<void>
}

/** pgbouncer in transaction mode. */
export async function startPgbouncer(program: string, databasePort: number): Promise<Pooler> {
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  const port = await findFreePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
postgres = host=127.0.0.1 port=${databasePort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_login_retry = 0.2
`,
  )
  // It refuses to run as root.
  const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid)
  const child = spawn(program, [file], { ...identity, stdio: 'ignore' })
  await untilListening(port, child)
  return {
    port,
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening(port: number, child: ChildProcess): Promise<void> {
  for (const end = Date.now() + 10_000; Date.now() < end && child.exitCode === null; await sleep(50)) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
  }
  throw new Error(`pgbouncer does not listen; its exit code is ${child.exitCode}.`)
}
