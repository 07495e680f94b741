import type { Socket } from 'node:net'

/** Bytes a second that a reader needs at least. */
export const SLOWEST_READER = 15_000
/**
 * The most bytes that the kernel takes before it has to wait for the reader again: it asks for more when a third of its
 * send buffer is free, which on Linux is at most 1.3 MiB.
 */
const MOST_BUFFERED = 1.5 * 1024 * 1024

/**
 * Whether a reader keeps the slowest pace. Bytes that the kernel has taken may still be on their way: the reader has the
 * time for them that they need at that pace, and `idleTimeout` more.
 */
export interface ReadPace {
  /** Notes bytes that the kernel took since the last call. */
  advance(bytes: number, now: number): void
  /** Notes that nothing waits to be sent: the time until now does not count. */
  rest(now: number): void
  isBroken(idleTimeout: number, now: number): boolean
}

/**
 * @param rate bytes a second
 * @param now milliseconds of a clock that never goes back
 */
export function createReadPace(rate: number, now: number): ReadPace {
  let since = now
  /** Bytes that were taken and may still be unread. */
  let unread = 0
  const settle = (now: number): void => {
    unread = Math.max(0, unread - ((now - since) * rate) / 1000)
    since = now
  }
  return {
    advance(bytes, now) {
      settle(now)
      unread = Math.min(MOST_BUFFERED, unread + bytes)
    },
    rest: settle,
    isBroken: (idleTimeout, now) => now - since > idleTimeout + (unread / rate) * 1000,
  }
}

/** What a handle of Node knows of its writes; TLS has that of the connection below it. */
interface StreamHandle {
  readonly bytesWritten?: number
  readonly writeQueueSize?: number
  readonly _parent?: StreamHandle
}

function handleOf(socket: Socket): StreamHandle | undefined {
  const handle = (socket as Socket & { _handle?: StreamHandle | null })._handle
  return handle?._parent ?? handle ?? undefined
}

/**
 * Bytes that the kernel has taken. The socket itself sees a write only when all of it has left, and an answer of 1 MiB is
 * one write; its handle sees each part of it.
 */
export function bytesTaken(socket: Socket): number {
  const { bytesWritten, writeQueueSize } = handleOf(socket) ?? {}
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize
  return socket.bytesWritten - socket.writableLength
}

/** Whether bytes wait for the kernel to take them. */
export function isBackedUp(socket: Socket): boolean {
  return socket.writableLength > 0 || (handleOf(socket)?.writeQueueSize ?? 0) > 0
}
