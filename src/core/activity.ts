import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Exchange } from './exchange.ts'
import { streamOf } from './place.ts'

/** Counts what a handler has begun and not ended, so that it can be closed when all of it is done. */
export interface Activity {
  /** Whether every answer is the last on its connection. */
  readonly isDraining: boolean
  begin(exchange: Exchange): void
  end(exchange: Exchange): void
  /**
   * From now on every answer is the last on its connection.
   * @returns fulfilled when nothing is under way, or nothing but requests whose clients left 5 seconds ago: a hook or a
   *   store that hangs must not keep the process from ending
   */
  drain(): Promise<void>
}

/** Milliseconds for which a request is waited for whose client has left. */
const PATIENCE = 5000
const LOOKS = 20
/** Milliseconds for which a connection whose last answer did not tell that it ends waits for another request. */
const LAST_WAIT = 1000

export function createActivity(patience: number = PATIENCE): Activity {
  // Each exchange knows its place in the list: to find it in a Set took 2 % of a small GET.
  const running: Exchange[] = []
  let endDrain: (() => void) | undefined

  /** An answer that is decided may still be on its way to the writer, which begins anew: the turn has to be over. */
  function endDrainLater(): void {
    if (running.length === 0) setImmediate(() => running.length === 0 && endDrain?.())
  }

  /** Ends the drain when the clients of all that is under way have left for long enough. @returns what stops it */
  function watchAbandoned(): () => void {
    let looks = 0
    const timer = setInterval(() => {
      looks = running.every(({ hasLeft }) => hasLeft) ? looks + 1 : 0
      if (looks > LOOKS) endDrain?.()
    }, patience / LOOKS)
    return () => clearInterval(timer)
  }

  const activity = {
    isDraining: false,

    begin(exchange: Exchange): void {
      if (exchange.activityIndex < 0) exchange.activityIndex = running.push(exchange) - 1
      if (activity.isDraining) endConnection(exchange)
    },

    end(exchange: Exchange): void {
      const { activityIndex } = exchange
      if (activityIndex >= 0) {
        const last = running.pop()!
        if (last !== exchange) {
          running[activityIndex] = last
          last.activityIndex = activityIndex
        }
        exchange.activityIndex = -1
      }
      if (!activity.isDraining) return
      endConnection(exchange)
      endDrainLater()
    },

    drain(): Promise<void> {
      activity.isDraining = true
      running.forEach(endSoonAfter)
      return new Promise((resolve) => {
        const before = endDrain
        const stop = watchAbandoned()
        endDrain = () => {
          stop()
          before?.()
          resolve()
        }
        endDrainLater()
      })
    },
  }
  return activity
}

/** Connection: close (RFC 9112 §9.6), or GOAWAY (RFC 9113 §6.8), which lets the streams of a session end. */
function endConnection(exchange: Exchange): void {
  if (exchange.isHttp2) streamOf(exchange).session?.close()
  else exchange.res.shouldKeepAlive = false
}

/**
 * An answer that was decided before did not tell that its connection ends, which Node keeps for 5 seconds, and Fastify for 72.
 * One whose head has not left, because its content comes late, does not tell either: answers may wait behind it.
 */
function endSoonAfter({ isHttp2, req, res }: Exchange): void {
  if (isHttp2) return
  const { server } = req.socket as AnsweredSocket
  // Node lifts the limit for the next request only where it has set one of its own.
  if (server !== undefined && server.keepAliveTimeout > LAST_WAIT) watchFinish(res)
}

type AnsweredSocket = Socket & { readonly server?: Server; readonly _httpMessage?: ServerResponse | null }

function watchFinish(res: ServerResponse): void {
  if (!res.listeners('finish').includes(limitWait)) res.once('finish', limitWait)
}

/** The answer to a pipelined request has the socket by now: it may take longer, and may have been decided before as well. */
function limitWait(this: ServerResponse): void {
  const socket = this.req.socket as AnsweredSocket
  if (socket._httpMessage) watchFinish(socket._httpMessage)
  else socket.setTimeout(LAST_WAIT)
}
