import { tooLarge } from '../body-types/limits.ts'
import { isJsonObject, type JsonObject } from '../core/json.ts'
import { hasProperties } from '../core/option-values.ts'
import { contentGone } from '../core/request-content.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Content that a parser before us consumed, as a stream. */
export async function* streamConsumed(
  value: unknown,
  exchange: ResourceExchange,
  limit: number,
): AsyncGenerator<Uint8Array> {
  if (exchange.contentType === 'multipart/form-data' && !(value instanceof Uint8Array)) {
    throw new TypeError(
      'The multipart content was parsed before http-resource-service saw it. Mount the service before that parser.',
    )
  }
  yield encodeConsumed(value, exchange, limit)
}

/**
 * Content that a parser before us consumed, as bytes again.
 * @throws HttpError 413 above the limit; TypeError where the value is neither JSON nor that of a form: Express 4 leaves `{}`
 *   for content of every type
 */
export function encodeConsumed(value: unknown, exchange: ResourceExchange, limit: number): Uint8Array {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(writeConsumed(value, exchange))
  if (bytes.length > limit) throw tooLarge(limit)
  return bytes
}

function writeConsumed(value: unknown, exchange: ResourceExchange): string {
  if (typeof value === 'string') return value
  // A patch document is JSON, whatever its type is called.
  if (exchange.hasJson || exchange.method === 'PATCH') return JSON.stringify(value)
  if (exchange.contentType !== 'application/x-www-form-urlencoded' || !hasProperties(value)) throw contentGone(exchange)
  const parameters = new URLSearchParams()
  addParameters(parameters, '', value as JsonObject)
  return parameters.toString()
}

/** Names as they were sent: parsers with "extended" syntax make `a[b]` a member `b` of `a`. */
function addParameters(parameters: URLSearchParams, prefix: string, members: JsonObject): void {
  for (const [member, value] of Object.entries(members)) {
    const name = prefix === '' ? member : `${prefix}[${member}]`
    for (const item of Array.isArray(value) ? value : [value]) {
      if (isJsonObject(item)) addParameters(parameters, name, item)
      else parameters.append(name, String(item))
    }
  }
}
