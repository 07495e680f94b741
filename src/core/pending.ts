import { mergeVary } from '../protocol/field-value.ts'
import { BASE_FIELDS, type Exchange } from './exchange.ts'

/** Adds fields to every later reply, in the place of those that a middleware before has added under the same names. */
export function addPending(exchange: Exchange, fields: readonly string[]): void {
  const { pending } = exchange
  const names = fields.filter((_, i) => i % 2 === 0)
  const kept = pending === BASE_FIELDS ? pending : pending.filter((_, i) => !names.includes(pending[i - (i % 2)]!))
  exchange.pending = kept.concat(fields)
}

/** Adds field names to the Vary of every later reply. */
export function addVary(exchange: Exchange, names: string): void {
  exchange.vary = mergeVary(exchange.vary, names)
}

/**
 * Makes a function that does the same for one list of names. It keeps what it made last: the names before it are the same
 * for nearly all requests of a service, and putting two lists together costs 1,800 instructions of the 110,000 of a GET.
 */
export function createVaryAdder(names: string): (exchange: Exchange) => void {
  let before = ''
  let after = names
  return (exchange) => {
    if (exchange.vary !== before) {
      before = exchange.vary
      after = mergeVary(before, names)
    }
    exchange.vary = after
  }
}

/** Whether anything has to be on the answer of a host that answers by itself. */
export function hasPending({ pending, vary }: Exchange): boolean {
  return pending !== BASE_FIELDS || vary !== ''
}

/**
 * The pending fields by name, for a host that answers by itself; the base fields are not among them.
 * @param present the value of Vary that the host has already set, if any
 */
export function collectPending(exchange: Exchange, present: string): Map<string, string | string[]> {
  const { pending, vary } = exchange
  const fields = new Map<string, string | string[]>()
  for (let i = 0; i < pending.length; i += 2) {
    const name = pending[i]!
    const value = pending[i + 1]!
    if (BASE_FIELDS.includes(name)) continue
    const known = fields.get(name)
    fields.set(name, known === undefined ? value : [known, value].flat())
  }
  if (vary !== '') fields.set('Vary', mergeVary(present, vary))
  return fields
}

/**
 * Puts the pending fields on the host's response, for a middleware that lets the request go on: the route that answers it does
 * not know of the exchange. The writer of this package replaces them, so that none is sent twice.
 */
export function passOnPending(exchange: Exchange): void {
  const { res } = exchange
  if (!hasPending(exchange) || res.headersSent) return
  for (const [name, value] of collectPending(exchange, String(res.getHeader('vary') ?? ''))) res.setHeader(name, value)
}
