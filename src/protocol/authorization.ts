import { formatQuotedString, isToken, parseParameterValue, skipToken, skipWhitespace } from './field-value.ts'

/** The value of an Authorization field (RFC 9110 §11.4), not yet interpreted by a scheme. */
export interface Credentials {
  /** Scheme name in lower case: names are case-insensitive (RFC 9110 §11.1). */
  readonly scheme: string
  /** Everything after the scheme and its blanks, untouched; empty when there is nothing. */
  readonly value: string
}

/** Splits an Authorization value into scheme and the rest (RFC 9110 §11.4); `undefined` when it does not begin with a token. */
export function parseAuthorization(field: string): Credentials | undefined {
  const end = skipToken(field, 0)
  if (end === 0) return undefined
  if (end < field.length && field.charCodeAt(end) !== 0x20) return undefined
  let from = end
  while (field.charCodeAt(from) === 0x20) from++
  return { scheme: field.slice(0, end).toLowerCase(), value: field.slice(from) }
}

/** Whether `text` is a `token68`, which is also the `b64token` of RFC 6750 §2.1. */
export function isToken68(text: string): boolean {
  return /^[\w\-.~+/]+=*$/.test(text)
}

/**
 * Reads `name=value, name="value"` (RFC 9110 §11.2), as Digest credentials carry it.
 * @returns values by lower-case name; `undefined` when a parameter is malformed or a name occurs twice
 */
export function parseAuthParameters(text: string): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>()
  let at = skipWhitespace(text, 0)
  while (at < text.length) {
    if (text.charCodeAt(at) === 0x2c) {
      at = skipWhitespace(text, at + 1)
      continue
    }
    const equals = skipToken(text, at)
    const name = text.slice(at, equals).toLowerCase()
    at = skipWhitespace(text, equals)
    if (name === '' || parameters.has(name) || text.charCodeAt(at) !== 0x3d) return undefined
    const parsed = parseParameterValue(text, skipWhitespace(text, at + 1))
    if (parsed === undefined) return undefined
    parameters.set(name, parsed.value)
    at = skipWhitespace(text, parsed.end)
    if (at < text.length && text.charCodeAt(at) !== 0x2c) return undefined
  }
  return parameters
}

/** One parameter of a challenge; `token` leaves the value unquoted, as `algorithm` and `stale` of Digest need it. */
export interface ChallengeParameter {
  readonly name: string
  readonly value: string
  readonly form?: 'token'
}

/** Writes one challenge for WWW-Authenticate (RFC 9110 §11.6.1), every value quoted unless it says otherwise. */
export function formatChallenge(scheme: string, parameters: readonly ChallengeParameter[]): string {
  if (parameters.length === 0) return scheme
  const list = parameters.map((parameter) => {
    const { name, value } = parameter
    const isUnquoted = Object.hasOwn(parameter, 'form') && parameter.form === 'token' && isToken(value)
    return `${name}=${isUnquoted ? value : formatQuotedString(value)}`
  })
  return `${scheme} ${list.join(', ')}`
}
