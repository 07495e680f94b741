import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/**
 * The value of a request field, read as an own property: Node keeps fields in an ordinary object, and a polluted
 * prototype would otherwise send fields in the client's name.
 * @param name in lower case
 */
export function readField(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return value !== undefined && Object.hasOwn(headers, name) ? String(value) : undefined
}

/** How often a field was sent. `req.headers` hides it: Node keeps the first of some fields and joins others. */
export function countField(req: Pick<IncomingMessage, 'rawHeaders'>, name: string): number {
  const { rawHeaders } = req
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (isNamed(rawHeaders[i]!, name)) count++
  return count
}

/**
 * Makes a search for a field that was sent more than once: two programs that choose differently among its values would
 * see two different requests (RFC 9110 §5.3).
 * @param names in lower case, each of another length
 * @returns a function that gives the first name that is repeated
 */
export function createRepeatedFieldSearch(
  ...names: readonly string[]
): (req: Pick<IncomingMessage, 'rawHeaders'>) => string | undefined {
  const nameOfLength: (string | undefined)[] = Array.from({ length: 1 + Math.max(...names.map((name) => name.length)) })
  for (const name of names) nameOfLength[name.length] = name

  return function findRepeatedField(req) {
    const { rawHeaders } = req
    let lengths = 0
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const raw = rawHeaders[i]!
      const { length } = raw
      const name = length < nameOfLength.length ? nameOfLength[length] : undefined
      // Names are compared only where two fields look alike.
      if (name === undefined || (raw.charCodeAt(0) | 0x20) !== name.charCodeAt(0)) continue
      if ((lengths & (1 << length)) !== 0 && countField(req, name) > 1) return name
      lengths |= 1 << length
    }
    return undefined
  }
}

/** Length and first letter settle nearly every comparison without a new string. */
function isNamed(raw: string, name: string): boolean {
  return (
    raw.length === name.length &&
    (raw.charCodeAt(0) | 0x20) === name.charCodeAt(0) &&
    (raw === name || raw.toLowerCase() === name)
  )
}

/** Whether a request carries one of the fields that mark a proxy. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  // Asked of every request, and mostly there is none: a look under a fixed name is the quickest.
  if ((headers['x-forwarded-for'] ?? headers['x-forwarded-proto'] ?? headers.forwarded) === undefined) return false
  return (
    readField(headers, 'x-forwarded-for') !== undefined ||
    readField(headers, 'x-forwarded-proto') !== undefined ||
    readField(headers, 'forwarded') !== undefined
  )
}
