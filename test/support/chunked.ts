import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A request whose content comes in chunks of `size` bytes, each with its own size line (RFC 9112 §7.1). */
export function chunkedRequest(line: string, fields: readonly string[], content: Uint8Array, size: number): Buffer {
  const head = Buffer.from([line, 'Host: localhost', ...fields, 'Transfer-Encoding: chunked', '', ''].join('\r\n'))
  const count = Math.ceil(content.length / size)
  const wire = Buffer.allocUnsafe(head.length + content.length + count * (size.toString(16).length + 4) + 5)
  let at = head.copy(wire)
  for (let from = 0; from < content.length; from += size) {
    const chunk = content.subarray(from, from + size)
    at += wire.write(`${chunk.length.toString(16)}\r\n`, at, 'latin1')
    wire.set(chunk, at)
    at += chunk.length
    at += wire.write('\r\n', at, 'latin1')
  }
  at += wire.write('0\r\n\r\n', at, 'latin1')
  return wire.subarray(0, at)
}

/** Opens a connection and writes to it. */
export async function openWith(port: number, wire: Uint8Array): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {}) // a server that refuses content may reset what is still being sent
  await once(socket, 'connect')
  socket.write(wire)
  return socket
}

/** The status of the first answer. */
export async function statusOn(socket: Socket): Promise<number> {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.resume()
  return Number(chunk.toString('latin1', 9, 12))
}

/** Processor time of this process, in milliseconds, for one request on a connection of its own. */
export async function cpuOf(
  port: number,
  wire: Uint8Array,
): Promise<{ readonly cpu: number; readonly status: number }> {
  const before = process.cpuUsage()
  const socket = await openWith(port, wire)
  const status = await statusOn(socket)
  const { user, system } = process.cpuUsage(before)
  socket.destroy()
  return { cpu: (user + system) / 1000, status }
}
