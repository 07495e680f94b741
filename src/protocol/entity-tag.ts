/** Entity tags (RFC 9110 §8.8.3), kept in the form they have on the wire: `"abc"` or `W/"abc"`. */

/**
 * Index after the entity tag that starts at `at`, or -1 when none does.
 * A real scanner, because an opaque tag may hold commas and semicolons.
 */
function scanEntityTag(text: string, at: number): number {
  if (text.charCodeAt(at) === 0x57 && text.charCodeAt(at + 1) === 0x2f) at += 2 // W/, case-sensitive
  if (text.charCodeAt(at) !== 0x22) return -1
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) return i + 1
    if (code < 0x21 || code === 0x7f || code > 0xff) return -1
  }
  return -1
}

/** Whether `text` is exactly one well-formed entity tag. */
export function isEntityTag(text: string): boolean {
  return scanEntityTag(text, 0) === text.length
}

/** Whether a well-formed entity tag is weak. */
export function isWeakTag(tag: string): boolean {
  return tag.charCodeAt(0) === 0x57
}

/**
 * Makes a strong entity tag of an opaque version.
 * Characters that a tag cannot hold are percent-encoded, so that different versions give different tags.
 */
export function formatEntityTag(version: string): string {
  return isOpaque(version) ? `"${version}"` : `"${encodeURIComponent(version)}"`
}

/**
 * Whether a version can stand in a tag as it is: visible ASCII without quotes, and without "%", which marks what was
 * encoded. A loop, because a regular expression takes 700 instructions for ten characters.
 */
function isOpaque(version: string): boolean {
  for (let i = 0; i < version.length; i++) {
    const code = version.charCodeAt(i)
    if (code < 0x21 || code > 0x7e || code === 0x22 || code === 0x25) return false
  }
  return true
}

/** Whether two tags are equal and neither is weak (RFC 9110 §8.8.3.2). */
export function matchesStrongly(a: string, b: string): boolean {
  return a === b && !isWeakTag(a)
}

/** What an If-Match or If-None-Match value says about the tags of the current state. */
export type EntityTagMatch = 'any' | 'match' | 'no-match' | 'malformed'

/**
 * Compares the list in an If-Match or If-None-Match value with current tags, in one pass and without splitting.
 * @param field the value: `*`, or a list of entity tags; empty members are ignored (RFC 9110 §5.6.1.2)
 * @param tags the tags of the current state, well-formed; none when there is no tag
 * @param comparison `strong` for If-Match, `weak` for If-None-Match
 * @returns `any` for `*`; `malformed` when the value is neither `*` nor a list of tags, whatever matched before
 */
export function matchEntityTags(field: string, tags: readonly string[], comparison: 'strong' | 'weak'): EntityTagMatch {
  if (field === '*') return 'any'
  // Mostly it is the one tag that the client was given.
  if (field === tags[0]) return comparison === 'weak' || !isWeakTag(field) ? 'match' : 'no-match'
  let found = false
  let at = 0
  let separated = true
  while (at < field.length) {
    const code = field.charCodeAt(at)
    if (code === 0x20 || code === 0x09) at++
    else if (code === 0x2c) {
      separated = true
      at++
    } else {
      const end = separated ? scanEntityTag(field, at) : -1
      if (end < 0) return 'malformed'
      if (!found) found = matchesOne(field, at, end, tags, comparison)
      separated = false
      at = end
    }
  }
  return found ? 'match' : 'no-match'
}

function matchesOne(
  field: string,
  start: number,
  end: number,
  tags: readonly string[],
  comparison: 'strong' | 'weak',
): boolean {
  for (const tag of tags) {
    // Equal length first: most of a long list is ruled out without making a string.
    if (comparison === 'strong') {
      if (end - start === tag.length && !isWeakTag(tag) && field.startsWith(tag, start)) return true
    } else {
      const opaque = isWeakTag(tag) ? tag.slice(2) : tag
      const from = field.charCodeAt(start) === 0x57 ? start + 2 : start
      if (end - from === opaque.length && field.startsWith(opaque, from)) return true
    }
  }
  return false
}
