import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { parseHttpDate } from '../protocol/dates.ts'
import { type Conditions, evaluatePreconditions, type Validators } from '../protocol/preconditions.ts'
import { note } from './diagnostics.ts'
import { HttpError, malformedField } from './errors.ts'
import type { Exchange } from './exchange.ts'

/** The value of a request field, read as `Exchange.field` reads it: a polluted prototype has none. @param name in lower case */
export function readField(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  if (value === undefined || !Object.hasOwn(headers, name)) return undefined
  return typeof value === 'string' ? value : String(value)
}

/** The bits of all lengths. */
export const ALL_LENGTHS: number = ~0

/** A bit for each length of a name, modulo 32. A field is absent where its length has no bit. */
export function measureNames(headers: IncomingHttpHeaders): number {
  let lengths = 0
  // An inherited name sets a bit too many. `readField` reads own properties only.
  for (const name in headers) lengths |= 1 << name.length
  return lengths
}

/** How often a field was sent. `req.headers` hides it: Node keeps the first of some fields and joins others. */
export function countField(req: Pick<IncomingMessage, 'rawHeaders'>, name: string): number {
  const { rawHeaders } = req
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (isNamed(rawHeaders[i]!, name)) count++
  return count
}

/**
 * Makes a search for a field that was sent more than once: two programs that choose differently among its values would
 * see two different requests (RFC 9110 §5.3).
 * @param names in lower case, at most 31
 * @returns a function that gives one of the names that is repeated
 */
export function createRepeatedFieldSearch(
  ...names: readonly string[]
): (req: Pick<IncomingMessage, 'rawHeaders'>) => string | undefined {
  // Of the fields of a request few have the length of any of the names, and the first letter: one pass over them.
  const byLength: { readonly name: string; readonly bit: number }[][] = []
  for (const [index, name] of names.entries()) (byLength[name.length] ??= []).push({ name, bit: 1 << index })
  return function findRepeatedField(req) {
    const { rawHeaders } = req
    let met = 0
    let counted = 0
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const raw = rawHeaders[i]!
      const candidates = byLength[raw.length]
      if (candidates === undefined) continue
      for (const { name, bit } of candidates) {
        if ((raw.charCodeAt(0) | 0x20) !== name.charCodeAt(0)) continue
        // Two that look alike are counted, once for a name: a request may have a thousand that do.
        if ((met & bit) !== 0 && (counted & bit) === 0) {
          if (countField(req, name) > 1) return name
          counted |= bit
        }
        met |= bit
      }
    }
    return undefined
  }
}

/** Whether a field name is `name`, in any case. The bit sets capitals apart from small letters; `-` and digits have it. */
function isNamed(raw: string, name: string): boolean {
  if (raw.length !== name.length) return false
  for (let i = 0; i < raw.length; i++) if ((raw.charCodeAt(i) | 0x20) !== name.charCodeAt(i)) return false
  return true
}

/** Whether a request carries one of the fields that mark a proxy. */
export function isForwarded(exchange: Pick<Exchange, 'field'>): boolean {
  return (
    exchange.field('x-forwarded-for') !== undefined ||
    exchange.field('x-forwarded-proto') !== undefined ||
    exchange.field('forwarded') !== undefined
  )
}

/**
 * Fields of which Node keeps the first line on HTTP/2 and joins all lines on HTTP/1: lists that a sender may split (RFC 9110
 * §5.3), and fields that more than one line makes malformed.
 */
const SPLIT_LISTS = [
  ...(['if-match', 'if-none-match', 'range', 'content-encoding', 'content-language'] as const),
  ...(['if-range', 'content-range', 'access-control-request-method'] as const),
]

/** Joins the lines of the fields that Node's HTTP/2 cuts to their first line, as Node does on HTTP/1. */
export function joinSplitLists(req: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): void {
  const { headers, rawHeaders } = req
  for (const name of SPLIT_LISTS) {
    if (readField(headers, name) === undefined || countField(req, name) === 1) continue
    headers[name] = rawHeaders.filter((_, i) => i % 2 === 1 && isNamed(rawHeaders[i - 1]!, name)).join(', ')
  }
}

/** Whether a request asks for digest fields on its answer (RFC 9530 §4). */
export function wantsDigests(exchange: Exchange): boolean {
  return exchange.field('want-repr-digest') !== undefined || exchange.field('want-content-digest') !== undefined
}

/** Whether a request states digests, or may do so in its trailer section. */
export function mayStateDigests(exchange: Exchange): boolean {
  return (
    exchange.field('content-digest') !== undefined ||
    exchange.field('repr-digest') !== undefined ||
    exchange.field('trailer') !== undefined
  )
}

/** Whether a request is a preflight: OPTIONS with Origin and Access-Control-Request-Method; other OPTIONS asks for Allow. */
export function isPreflightRequest(exchange: Exchange): boolean {
  return asksForMethod(exchange) && exchange.field('origin') !== undefined
}

/** Whether a request is a preflight if it has an Origin. */
export function asksForMethod(exchange: Exchange): boolean {
  return exchange.method === 'OPTIONS' && exchange.field('access-control-request-method') !== undefined
}

/** The conditions of a request; `undefined` where it carries none. */
export function readConditions(exchange: Exchange): Conditions | undefined {
  const ifMatch = exchange.field('if-match')
  const ifNoneMatch = exchange.field('if-none-match')
  const ifModifiedSince = readDate(exchange, 'if-modified-since')
  const ifUnmodifiedSince = readDate(exchange, 'if-unmodified-since')
  if ((ifMatch ?? ifNoneMatch ?? ifModifiedSince ?? ifUnmodifiedSince) === undefined) return undefined
  return { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince }
}

/**
 * A date that is given more than once is not a date, and is ignored (RFC 9110 §13.1.3). A request that no connection carried may
 * have no lines to count.
 */
function readDate(exchange: Exchange, name: string): string | undefined {
  const date = exchange.field(name)
  return date === undefined || countField(exchange.req, name) > 1 ? undefined : date
}

/**
 * Evaluates the conditions of a request (RFC 9110 §13.2.2).
 * @returns whether the client has the current representation already (304)
 * @throws HttpError 412; 400 for a malformed If-Match or, on an unsafe method, If-None-Match
 */
export function judgeConditions(
  exchange: Exchange,
  conditions: Conditions | undefined,
  validators: Validators | undefined,
  now: number,
): 'proceed' | 'not-modified' {
  if (conditions === undefined) return 'proceed'
  const result = evaluatePreconditions(conditions, validators, exchange.method, now)
  if (exchange.trace !== undefined) {
    note(exchange, result.field === undefined ? 'conditions met' : `${result.field} ${result.outcome}`)
  }
  if (result.outcome === 'failed') throw new HttpError(412, 'ERR_PRECONDITION_FAILED')
  if (result.outcome === 'malformed') throw malformedField(`${result.field} is not a list of entity tags.`)
  return result.outcome
}

/**
 * Refuses a change of what exists that comes without a condition. A condition that is ignored does not count: a date
 * that is none, or that meets a state without one (RFC 9110 §13.1.4).
 * @throws HttpError 428 (RFC 6585 §3)
 */
export function requireCondition(conditions: Conditions | undefined, current: Validators, now: number): void {
  if (conditions?.ifMatch !== undefined || conditions?.ifNoneMatch !== undefined) return
  if (conditions?.ifUnmodifiedSince !== undefined && current.lastModified !== undefined) {
    if (parseHttpDate(conditions.ifUnmodifiedSince, now) !== undefined) return
  }
  throw new HttpError(428, 'ERR_PRECONDITION_REQUIRED', { detail: 'Send the ETag you have in If-Match.' })
}
