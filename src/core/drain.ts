import type { Exchange } from './exchange.ts'
import { noteSent } from './stalled-reader.ts'

/**
 * Waits until one write has left, or the connection has closed. 'drain' and 'finish' count as well, because compressing
 * middleware emits them and calls no function.
 */
export interface Drain {
  readonly promise: Promise<void>
  /** Starts to wait for a write. */
  next(size: number): () => void
  close(): void
}

export function createDrain(exchange: Exchange): Drain {
  const { res } = exchange
  let settle = () => {}
  const goOn = () => settle()
  const stopWaiting = exchange.onClose(goOn)
  res.once('finish', goOn).on('drain', goOn)
  const drain = {
    promise: Promise.resolve(),
    next(size: number): () => void {
      drain.promise = new Promise<void>((resolve) => {
        settle = resolve
      })
      if (!exchange.isHttp2) return settle
      const resolve = settle
      let isNoted = false
      // By 'drain' too: a client that reads what was compressed would otherwise look as if it did not read.
      settle = () => {
        if (!isNoted) noteSent(exchange, size)
        isNoted = true
        resolve()
      }
      return settle
    },
    close() {
      stopWaiting()
      res.off('finish', goOn).off('drain', goOn)
    },
  }
  return drain
}
