import type { ServerHttp2Session } from 'node:http2'
import type { Exchange } from './exchange.ts'

/** Counts what a handler has begun and not ended, so that it can be closed when all of it is done. */
export interface Activity {
  begin(exchange: Exchange): void
  end(exchange: Exchange): void
  /**
   * From now on every answer is the last on its connection.
   * @returns fulfilled when nothing is under way
   */
  drain(): Promise<void>
}

export function createActivity(): Activity {
  let running = 0
  let isDraining = false
  let settle: (() => void) | undefined

  /** An answer that is decided may still be on its way to the writer, which begins anew: the turn has to be over. */
  function settleLater(): void {
    if (running === 0) setImmediate(() => running === 0 && settle?.())
  }

  return {
    begin(exchange) {
      running++
      if (isDraining) endConnection(exchange)
    },
    end(exchange) {
      running--
      if (!isDraining) return
      endConnection(exchange)
      settleLater()
    },
    drain() {
      isDraining = true
      return new Promise((resolve) => {
        const before = settle
        settle = () => {
          before?.()
          resolve()
        }
        settleLater()
      })
    },
  }
}

/** Connection: close (RFC 9112 §9.6), or GOAWAY (RFC 9113 §6.8), which lets the streams of a session end. */
function endConnection({ isHttp2, req, res }: Exchange): void {
  if (!isHttp2) res.shouldKeepAlive = false
  else (req as unknown as { stream: { session?: ServerHttp2Session } }).stream.session?.close()
}
