import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** What the server does with a connection once it has been asked to open it. */
export type Opening = 'serve' | 'end-at-once' | 'say-nothing'

/** A server that speaks as much of the Postgres protocol as opening a connection and failing takes. */
export interface FakePostgres {
  readonly connectionString: string
  /** How the next connections are opened. */
  opening: Opening
  /** Whether queries are answered; with no rows. */
  isAnswering: boolean
  /** Connections that are open now. */
  readonly open: ReadonlySet<Socket>
  /** Connections that were accepted so far. */
  readonly accepted: number
  /** Ends every connection as an administrator does (57P01), or without a word. */
  endAll(farewell: 'with-error' | 'reset'): void
  close(): Promise<void>
}

function message(type: string, ...parts: readonly (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const AUTHENTICATION_OK = message('R', Buffer.alloc(4))
const READY = message('Z', 'I')
const SHUTDOWN = message('E', 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')
const NO_ROWS = Buffer.concat([message('1'), message('2'), message('n'), message('C', 'SELECT 0\0')])

export async function startFakePostgres(): Promise<FakePostgres> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    fake.accepted++
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
    let isOpened = false
    socket.on('data', (data) => {
      if (!isOpened) {
        isOpened = true
        if (fake.opening === 'say-nothing') return
        socket.write(Buffer.concat([AUTHENTICATION_OK, READY, ...(fake.opening === 'end-at-once' ? [SHUTDOWN] : [])]))
        if (fake.opening === 'end-at-once') socket.end()
        return
      }
      if (!fake.isAnswering) return
      const type = String.fromCharCode(data[0]!)
      if (type === 'Q') socket.write(Buffer.concat([message('C', 'SET\0'), READY]))
      else if (type === 'P' || type === 'B') socket.write(Buffer.concat([NO_ROWS, READY]))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const fake = {
    connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
    opening: 'serve' as Opening,
    isAnswering: true,
    open,
    accepted: 0,
    endAll(farewell: 'with-error' | 'reset') {
      for (const socket of open) {
        if (farewell === 'reset') socket.resetAndDestroy()
        else socket.end(SHUTDOWN)
      }
    },
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return fake
}
