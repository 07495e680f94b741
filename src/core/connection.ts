import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { InFlight, Pipeline } from './pipeline.ts'
import { isHttp2 } from './place.ts'
import type { WatchedConnection } from './stalled-reader.ts'

/**
 * What is known of a connection for as long as it lives: one object, which stands on the socket or the session under one
 * symbol. Where each of these was a property of the socket, sockets differed in what they had, and the functions of Node that
 * write to them took 1,400 instructions more of the 140,000 of a small PUT.
 */
export interface Connection {
  /** Watches whether the client reads its answers. */
  reader: WatchedConnection | undefined
  /** The requests that stand behind another. */
  pipeline: Pipeline | undefined
  /** The request that was taken last, if it was not decided at once. */
  inFlight: InFlight | undefined
}

const CONNECTION = Symbol('connection')

/** The object that lives as long as the connection of a request: its socket or, on HTTP/2, its session. */
export function carrierOf(req: IncomingMessage): object {
  if (!isHttp2(req)) return req.socket
  return (req as unknown as Http2ServerRequest).stream.session ?? req.socket
}

/** What is known of a connection. @param carrier its socket or session */
export function connectionOf(carrier: object): Connection {
  const known = (carrier as { [CONNECTION]?: Connection })[CONNECTION]
  if (known !== undefined) return known
  const connection = { reader: undefined, pipeline: undefined, inFlight: undefined }
  ;(carrier as { [CONNECTION]?: Connection })[CONNECTION] = connection
  return connection
}
