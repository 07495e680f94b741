import { parseItem } from './structured-fields.ts'

const MAX_LENGTH = 255

/** Visible ASCII but `"`, `,`, `;` and `\`: what a client may send without quotes and with them alike. */
const KEY = /^[!#-+\--:<-[\]-~]+$/

/**
 * Parses an Idempotency-Key field (draft-ietf-httpapi-idempotency-key-header-07 §2.1): a String, or its bare text, which
 * many clients send. `"k"` and `k` are the same key.
 * @param field the field; several lines are a list, which is malformed
 * @returns the key, 1 to 255 visible characters of ASCII; `undefined` when the field is malformed
 */
export function parseIdempotencyKey(field: string): string | undefined {
  const text = field.trim()
  let key = text
  if (text.startsWith('"')) {
    const item = parseItem(text)
    if (item?.type !== 'string') return undefined
    key = item.value
  }
  return key.length <= MAX_LENGTH && KEY.test(key) ? key : undefined
}
