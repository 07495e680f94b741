import type { IncomingMessage } from 'node:http'
import { parseRequestTarget } from '../protocol/request-target.ts'
import { HttpError } from './errors.ts'
import { type Exchange, findMount, findTarget, type HostRequest } from './exchange.ts'

/**
 * Puts mount, path and query on the exchange. Pieces on one request may be mounted at different prefixes, so each
 * reads them anew.
 * @throws HttpError 400 when the target is malformed
 */
export function readTarget(exchange: Exchange): void {
  const req = exchange.req as IncomingMessage & HostRequest
  const url = findTarget(req)
  exchange.mount = findMount(req)
  if (url === '*') {
    exchange.path = '*'
    exchange.queryText = ''
    return
  }
  const target = parseRequestTarget(url)
  if (target === undefined) {
    throw new HttpError(400, 'ERR_MALFORMED_TARGET', { detail: 'The target of the request is malformed.' })
  }
  exchange.path = target.path
  exchange.queryText = target.query
}
