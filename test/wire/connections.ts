import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { hosts } from '../support/hosts.ts'

/** Hosts of HTTP/1.1 on which connections are attacked. */
export const HTTP1_HOSTS: readonly string[] = Object.keys(hosts).filter((name) => name !== 'http2')

/** Opens a connection that does not read before it is resumed. */
export async function openSilent(host: string, port: number): Promise<Socket> {
  const socket =
    host === 'https'
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  await once(socket, host === 'https' ? 'secureConnect' : 'connect')
  socket.pause()
  return socket
}

/** Reads on, and counts the answers whose head has arrived; their content must not look like a status line. */
export function countAnswers(socket: Socket): { count: number; bytes: number } {
  const seen = { count: 0, bytes: 0 }
  let rest = ''
  socket.on('data', (chunk: Buffer) => {
    seen.bytes += chunk.length
    const parts = (rest + chunk.toString('latin1')).split('HTTP/1.1 200 ')
    seen.count += parts.length - 1
    rest = parts.at(-1)!.slice(-20)
  })
  socket.resume()
  return seen
}

/** Reads about so many bytes a second. */
export function readSlowly(socket: Readable, bytesPerSecond: number): { bytes: number; stop(): void } {
  const start = performance.now()
  const seen = { bytes: 0, stop: () => clearInterval(timer) }
  const isDue = (): boolean => seen.bytes < ((performance.now() - start) / 1000) * bytesPerSecond
  socket.on('data', (chunk: Buffer) => {
    seen.bytes += chunk.length
    if (!isDue()) socket.pause()
  })
  const timer = setInterval(() => isDue() && socket.resume(), 10)
  return seen
}

export function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
}
