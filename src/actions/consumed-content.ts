import { tooLarge } from '../body-types/limits.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'

/** Content that a parser before us consumed, as a stream. */
export async function* streamConsumed(value: unknown, essence: string, limit: number): AsyncGenerator<Uint8Array> {
  if (essence === 'multipart/form-data' && !(value instanceof Uint8Array)) {
    throw new TypeError(
      'The multipart content was parsed before http-resource-service saw it. Mount the service before that parser.',
    )
  }
  yield encodeConsumed(value, essence, limit)
}

/** Content that a parser before us consumed, as bytes again. @throws HttpError 413 above the limit */
export function encodeConsumed(value: unknown, essence: string, limit: number): Uint8Array {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(writeConsumed(value, essence))
  if (bytes.length > limit) throw tooLarge(limit)
  return bytes
}

function writeConsumed(value: unknown, essence: string): string {
  if (typeof value === 'string') return value
  if (essence !== 'application/x-www-form-urlencoded' || !isJsonObject(value as JsonValue)) return JSON.stringify(value)
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
