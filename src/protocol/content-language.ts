import { splitList } from './field-value.ts'

/** Letters, digits and hyphens in groups (RFC 5646 §2.1), as far as a field may hold them. */
const LIST = /^[a-z0-9]{1,8}(?:-[a-z0-9]{1,8})*(?:[ \t]*,[ \t]*[a-z0-9]{1,8}(?:-[a-z0-9]{1,8})*)*$/i

/** Whether text is a list of language tags as a sender writes it (RFC 9110 §8.5). */
export function isLanguageList(text: string): boolean {
  return LIST.test(text)
}

/**
 * Reads Content-Language as it was received.
 * @returns the list without empty members, which a recipient ignores (RFC 9110 §5.6.1.2); `undefined` where it is malformed
 */
export function readLanguages(field: string): string | undefined {
  if (isLanguageList(field)) return field
  const list = splitList(field).join(', ')
  return list === '' || isLanguageList(list) ? list : undefined
}
