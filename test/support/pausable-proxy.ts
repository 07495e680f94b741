import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A network path that can be cut without either end being notified, as when a cable is pulled. */
export interface PausableProxy {
  readonly port: number
  /** From now on no byte is forwarded, on old connections and on new ones. */
  pause(): void
  /** New connections are forwarded again; those that were open during the pause stay silent. */
  resume(): void
  close(): Promise<void>
}

export async function startProxy(targetPort: number): Promise<PausableProxy> {
  const sockets = new Set<Socket>()
  let isPaused = false

  function keep(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    return socket
  }

  const server = createServer((client) => {
    keep(client)
    if (isPaused) return client.pause()
    const target = keep(connect(targetPort, '127.0.0.1'))
    client.pipe(target).pipe(client)
    client.on('close', () => target.destroy())
    target.on('close', () => client.destroy())
    return undefined
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    port: (server.address() as { port: number }).port,
    pause() {
      isPaused = true
      for (const socket of sockets) {
        socket.unpipe()
        socket.pause()
      }
    },
    resume() {
      isPaused = false
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
