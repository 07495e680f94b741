/** Letters, digits and hyphens in groups (RFC 5646 §2.1), as far as a field may hold them. */
const LIST = /^[a-z0-9]{1,8}(?:-[a-z0-9]{1,8})*(?:[ \t]*,[ \t]*[a-z0-9]{1,8}(?:-[a-z0-9]{1,8})*)*$/i

/** Whether a field is a list of language tags (RFC 9110 §8.5). */
export function isLanguageList(field: string): boolean {
  return LIST.test(field)
}
