import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseJson, readConsumedJson } from '../body-types/json.ts'
import { type BodyLimits, tooLarge } from '../body-types/limits.ts'
import { NO_BYTES, readBytes } from '../body-types/read-body.ts'
import { isUtf8Charset } from '../body-types/text.ts'
import { malformedField } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { countField } from '../core/fields.ts'
import type { JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { describeValue, hasProperties } from '../core/option-values.ts'
import { checkContentCoding, declaredLength, findConsumedBody, hasBody } from '../core/request-content.ts'
import { type PatchFormat, selectPatchFormat, unsupportedPatch } from '../patch-formats/patch-format.ts'
import { parseMediaType } from '../protocol/media-type.ts'

/**
 * Selects the format of the patch that a request carries, before a byte of it is read.
 * @throws HttpError 415 with Accept-Patch or Accept-Encoding; 400 for a Content-Type that is malformed or repeated; 413
 */
export function selectFormat(exchange: Exchange, formats: readonly PatchFormat[], limits: BodyLimits): PatchFormat {
  const { req } = exchange
  if (countField(req, 'content-type') > 1) throw malformedField('Content-Type is given more than once.')
  const contentType = exchange.field('content-type')
  const format = selectPatchFormat(contentType, formats)
  // RFC 8259 §8.1
  if (contentType !== format.mediaType && !isUtf8Charset(parseMediaType(contentType!)?.parameters.get('charset'))) {
    throw unsupportedPatch('JSON is encoded as UTF-8.', formats)
  }
  // A parser before us has decoded what it consumed.
  if (findConsumedBody(exchange) === undefined) {
    checkContentCoding(exchange.field('content-encoding'), [])
    if ((declaredLength(exchange) ?? 0) > limits.bodySize) throw tooLarge(limits.bodySize)
  }
  return format
}

/** Bytes of a patch that is applied in a turn of its own: other requests wait 30 ms for one of 8 MiB in place of 55. */
const LARGE = 1024 * 1024

/** Reads the patch document. @throws HttpError 400, 408, 413, 422 */
export function readPatch(exchange: Exchange, limits: BodyLimits): MaybePromise<JsonValue> {
  // A parser before us makes `{}` of no bytes.
  const consumed = declaredLength(exchange) === 0 ? undefined : findConsumedBody(exchange)
  if (consumed === undefined) {
    if (!hasBody(exchange)) return parseJson(NO_BYTES, limits).value
    return readBytes(exchange, limits.bodySize, (_, bytes) => {
      const { value } = parseJson(bytes, limits)
      return bytes.length > LARGE ? nextTurn(value) : value
    })
  }
  return readConsumedJson(consumed.value, limits).value
}

/**
 * Checks what a function of the user gives as a document.
 * @param giver what the function gives, for the error
 * @throws TypeError for what JSON is not made of: where `read` gives a promise of a row, the patch would make a document of
 *   nothing, and `write` store it in the place of the row
 */
export function requireDocument(document: unknown, giver: string): void {
  const isComposed = typeof document === 'object' && document !== null && !Array.isArray(document)
  const isJson = isComposed ? hasProperties(document) : !NO_JSON.includes(typeof document)
  if (!isJson) throw new TypeError(`${giver}; the document is JSON, not ${describeValue(document)}.`)
}

const NO_JSON: readonly string[] = ['undefined', 'function', 'symbol', 'bigint']
