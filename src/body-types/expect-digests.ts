import { createContentVerifier } from '../core/content-digest.ts'
import { hasBody } from '../core/discard-body.ts'
import type { Exchange } from '../core/exchange.ts'
import { findConsumedBody } from './read-body.ts'

/**
 * Has the content of a request compared with the digests that its fields state (RFC 9530 §2): at once where it is at
 * hand, otherwise while `readBytes` or `streamBytes` reads it. Nothing happens where no field states one.
 * @param isRequired whether the content needs a digest by an algorithm that is supported
 * @throws HttpError 400 for malformed fields, for a digest that is required and missing, and for content at hand that
 *   has another digest; TypeError for a required digest of content of which a parser has left no bytes
 */
export function expectDigests(exchange: Exchange, isRequired: boolean): void {
  // A piece that ran before may have seen to it.
  if (exchange.verifier !== undefined && !isRequired) return
  const verifier = createContentVerifier(exchange, isRequired)
  if (verifier === undefined) return
  if (!hasBody(exchange.req)) return verifier.verify()
  const consumed = findConsumedBody(exchange.req)
  if (consumed === undefined) {
    exchange.verifier = verifier
    return
  }
  // A parser has decoded coded content, and its digest is that of the bytes as they came.
  if (consumed.value instanceof Uint8Array && !isCoded(exchange)) {
    verifier.update(consumed.value)
    verifier.verify()
  } else if (isRequired) {
    throw new TypeError(
      'The request content was parsed before http-resource-service saw it: its digest cannot be verified. ' +
        'Mount the service before the body parser, or let the parser leave the bytes in req.body.',
    )
  }
}

function isCoded(exchange: Exchange): boolean {
  const coding = exchange.field('content-encoding')
  return coding !== undefined && coding.toLowerCase() !== 'identity'
}
