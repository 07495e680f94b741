import { ServerResponse, STATUS_CODES, validateHeaderValue } from 'node:http'
import { isFieldValue, isToken, mergeVary } from '../protocol/field-value.ts'
import { BASE_FIELDS, type Exchange } from './exchange.ts'
import type { Reply } from './reply.ts'

/**
 * The fields of a reply as they leave: its own, the pending ones, and Vary. The one place that writes Vary.
 * @param present the value of Vary that the host has already set, if any
 */
export function completeHeaders(exchange: Exchange, reply: Reply, present: string): readonly string[] {
  const vary = present === '' ? exchange.vary : mergeVary(present, exchange.vary)
  const { pending } = exchange
  const kept = reply.kept?.headers === reply.headers ? reply.kept : undefined
  if (kept?.completed !== undefined && kept.pending === pending && kept.vary === vary) return kept.completed
  const fields = reply.headers.slice()
  for (let i = 0; i < pending.length; i += 2) {
    // What a reply says itself is about this one alone, and counts.
    if (i < BASE_FIELDS.length || !reply.headers.includes(pending[i]!)) fields.push(pending[i]!, pending[i + 1]!)
  }
  if (vary !== '') fields.push('Vary', vary)
  if (kept !== undefined) {
    kept.completed = fields
    kept.pending = pending
    kept.vary = vary
  }
  return fields
}

/**
 * What a reply alone says of its content. A host may have set them for an answer of its own: beside the Content-Length of the
 * reply or its lack of content they would be wrong, and the next answer on the connection could not be found (RFC 9112 §6.2).
 */
export const CONTENT_FIELDS: readonly string[] = ['Content-Type', 'Content-Length', 'Transfer-Encoding', 'Trailer']

/** Removes what the host has said of content that is not sent. */
export function removeContentFields(res: ServerResponse): void {
  // Node sends no chunks, whatever middleware makes of the content, once Transfer-Encoding has been removed.
  for (const name of CONTENT_FIELDS) if (res.hasHeader(name)) res.removeHeader(name)
}

/**
 * Adds that an answer is the last of its connection where it has Connection, or the host has set that: Node goes by the field
 * that it finds, and would keep a connection open that is to end.
 */
export function addClosing(exchange: Exchange, fields: readonly string[]): readonly string[] {
  if (exchange.isHttp2 || exchange.res.shouldKeepAlive) return fields
  const at = fields.indexOf('Connection') + 1
  if (at > 0) return /\bclose\b/i.test(fields[at]!) ? fields : fields.with(at, `${fields[at]}, close`)
  return exchange.hostField('connection') === undefined ? fields : [...fields, 'Connection', 'close']
}

type WriteMethods = Pick<ServerResponse, 'writeHead' | 'write' | 'end'>

let plainMethods: WriteMethods | undefined

/**
 * Whether no middleware has put methods of its own in place of those that write. They are compared with those of the last
 * plain response, which takes 20 instructions; a search among the forty properties of a response takes 100.
 */
export function isPlainResponse(res: ServerResponse): boolean {
  const { writeHead, write, end } = res
  if (writeHead === plainMethods?.writeHead && write === plainMethods?.write && end === plainMethods?.end) return true
  if (isReplaced(res, 'writeHead') || isReplaced(res, 'write') || isReplaced(res, 'end')) return false
  plainMethods = { writeHead, write, end }
  return true
}

/**
 * Whether middleware, or a class of the host, has put a method of its own in place of that of Node: that of `serverless-http`
 * takes the index in a list of fields for a name.
 */
export function isReplaced(res: ServerResponse, name: keyof WriteMethods): boolean {
  return Object.hasOwn(res, name) || (res instanceof ServerResponse && res[name] !== ServerResponse.prototype[name])
}

/** Writes the status line and the header section. */
export function writeHead(exchange: Exchange, reply: Reply): void {
  const { res } = exchange
  const mayChangeHead = !isPlainResponse(res) && (isReplaced(res, 'writeHead') || isReplaced(res, 'end'))
  const isPreset = res.getHeaderNames().length > 0
  if (isPreset) removeContentFields(res)
  const isPlain = !exchange.isHttp2 && !mayChangeHead && !isPreset
  const headers = completeHeaders(exchange, reply, isPlain ? '' : String(res.getHeader('vary') ?? ''))
  const all = addClosing(exchange, headers)
  // The phrase too: a head that could not be written leaves its own behind, and 500 would be called "OK".
  const phrase = STATUS_CODES[reply.status] ?? ''
  if (isPlain) return void res.writeHead(reply.status, phrase, all as string[])
  // The HTTP/2 interface takes no repeated names in a list; HTTP/1 takes none beside fields that the host has set.
  setFields(exchange, all)
  // Left to what writes or ends: without content the header section then ends the stream. A client that stops its
  // upload at an error would otherwise be reset for content shorter than it said, before it sees the answer's end.
  if (exchange.isHttp2) res.statusCode = reply.status
  // Middleware that wraps the methods may set fields until it writes, and `on-headers` up to 1.0.2 loses those of a list.
  else if (mayChangeHead) Object.assign(res, { statusCode: reply.status, statusMessage: phrase })
  else res.writeHead(reply.status, phrase)
}

/**
 * Sets fields on a response, one by one: for hosts whose own fields have to stay. A name that occurs more than once, as
 * WWW-Authenticate may, has all its values.
 */
function setFields({ res, isHttp2 }: Exchange, fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    const value = fields[i + 1]!
    // Node checks the values of HTTP/1 only. A line break in a field of HTTP/2 becomes a field of its own behind a gateway
    // (RFC 9113 §8.2.1, §10.3).
    if (isHttp2) validateHeaderValue(name, value)
    let first = 0
    while (fields[first] !== name) first += 2
    if (first === i) res.setHeader(name, value)
    else res.appendHeader(name, value)
  }
}

/** Removes the fields of a reply that could not be begun: they would be on the answer in its place. */
export function removeFields(res: ServerResponse, fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    if ([res.getHeader(fields[i]!)].flat().includes(fields[i + 1]!)) res.removeHeader(fields[i]!)
  }
}

/** Adds fields to every later reply, in the place of those that a middleware before has added under the same names. */
export function addPending(exchange: Exchange, fields: readonly string[]): void {
  const { pending } = exchange
  const names = fields.filter((_, i) => i % 2 === 0)
  const kept = pending === BASE_FIELDS ? pending : pending.filter((_, i) => !names.includes(pending[i - (i % 2)]!))
  exchange.pending = kept.concat(fields)
}

/** Whether a value is a list of fields, names and values in turn, that Node can send. */
export function isFieldList(value: unknown): value is readonly string[] {
  const isSendable = (text: unknown, index: number): boolean =>
    typeof text === 'string' && (index % 2 === 0 ? isToken(text) : isFieldValue(text))
  return Array.isArray(value) && value.length % 2 === 0 && value.every(isSendable)
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
