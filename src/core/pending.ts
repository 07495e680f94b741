import { mergeVary } from '../protocol/vary.ts'
import { BASE_FIELDS, type Exchange } from './exchange.ts'

/** Adds fields to every later reply. */
export function addPending(exchange: Exchange, fields: readonly string[]): void {
  exchange.pending = exchange.pending.concat(fields)
}

/**
 * A function that adds one name to Vary. The merge of the value met last is kept: within one service it is always
 * the same, and merging is the dearest part of a small request.
 */
export function createVaryMark(name: string): (exchange: Exchange) => void {
  let before = ''
  let after = name
  return (exchange) => {
    if (exchange.vary !== before) {
      before = exchange.vary
      after = mergeVary(before, name)
    }
    exchange.vary = after
  }
}

/**
 * Puts the pending fields on the host's response, for a piece that lets the request go on: whoever answers it does
 * not know of the exchange. A writer of ours replaces them, so that none is sent twice.
 */
export function passOnPending(exchange: Exchange): void {
  const { res, pending } = exchange
  if (res.headersSent) return
  const fields = new Map<string, string[]>()
  for (let i = 0; i < pending.length; i += 2) {
    const name = pending[i]!
    if (BASE_FIELDS.includes(name)) continue
    const values = fields.get(name)
    if (values === undefined) fields.set(name, [pending[i + 1]!])
    else values.push(pending[i + 1]!)
  }
  for (const [name, values] of fields) res.setHeader(name, values.length === 1 ? values[0]! : values)
  if (exchange.vary !== '') res.setHeader('Vary', mergeVary(String(res.getHeader('vary') ?? ''), exchange.vary))
}
