import type { IncomingMessage, ServerResponse } from 'node:http'
import { Exchange } from './exchange.ts'
import { findPlace, type Place } from './place.ts'

const EXCHANGE = Symbol.for('http-resource-service.exchange')

/** The exchange that all middleware mounted on one request shares: made by the first, and placed anew by each. */
export function sharedExchange(req: IncomingMessage, res: ServerResponse, place: Place = findPlace(req)): Exchange {
  const host = req as IncomingMessage & { [EXCHANGE]?: Exchange }
  const known = host[EXCHANGE]
  if (known !== undefined) {
    known.place = place
    known.mount = place.mount
    known.takeRequest()
    return known
  }
  const exchange = new Exchange(req, res, place)
  host[EXCHANGE] = exchange
  return exchange
}

/** The exchange that a middleware made on this request, if one ran before us. */
export function findExchange(req: IncomingMessage): Exchange | undefined {
  return (req as IncomingMessage & { [EXCHANGE]?: Exchange })[EXCHANGE]
}
