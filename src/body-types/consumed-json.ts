import { checkParsedJson, type ParsedJson, parseJson } from './json.ts'
import { tooLarge } from './read-body.ts'
import type { BodyLimits } from './types.ts'

/**
 * The JSON document in what a parser before us made of the content: its text or bytes, or a value already.
 * @throws HttpError 400, 413, 422 as for content that is read here, as far as it still can be checked
 */
export function readConsumedJson(
  consumed: unknown,
  limits: Pick<BodyLimits, 'depth' | 'jsonMembers' | 'parsedSize'>,
): ParsedJson {
  if (typeof consumed !== 'string' && !(consumed instanceof Uint8Array)) {
    // The bytes are gone, so it is written anew.
    const value = checkParsedJson(consumed, limits)
    return { value, text: JSON.stringify(value), isVerbatim: false }
  }
  const bytes = typeof consumed === 'string' ? Buffer.from(consumed) : consumed
  if (bytes.length > limits.parsedSize) throw tooLarge(limits.parsedSize)
  const parsed = parseJson(bytes, limits)
  return bytes === consumed ? parsed : { ...parsed, isVerbatim: false }
}
