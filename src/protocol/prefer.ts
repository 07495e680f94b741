import { parseParameterValue, skipToken, skipWhitespace, splitList } from './field-value.ts'

/** The preferences that this library knows (RFC 7240 §4). */
export interface Preferences {
  readonly return?: 'minimal' | 'representation'
  readonly handling?: 'strict' | 'lenient'
  readonly respondAsync?: true
  /** Seconds the client is willing to wait. */
  readonly wait?: number
}

/**
 * Reads Prefer. Unknown preferences are ignored; of a preference given twice the first counts, except that
 * `return=minimal` beside `return=representation` counts as neither (RFC 7240 §4.2).
 */
export function parsePrefer(field: string): Preferences {
  const values = new Map<string, string>()
  const returns = new Set<string>()
  for (const member of splitList(field)) {
    const end = skipToken(member, 0)
    if (end === 0) continue
    const name = member.slice(0, end).toLowerCase()
    const value = parsePreferenceValue(member, end)
    if (name === 'return') returns.add(value)
    if (!values.has(name)) values.set(name, value)
  }
  const preferences: { -readonly [Key in keyof Preferences]: Preferences[Key] } = {}
  const wanted = returns.has('minimal') && returns.has('representation') ? undefined : values.get('return')
  if (wanted === 'minimal' || wanted === 'representation') preferences.return = wanted
  const handling = values.get('handling')
  if (handling === 'strict' || handling === 'lenient') preferences.handling = handling
  if (values.get('respond-async') === '') preferences.respondAsync = true
  const wait = values.get('wait')
  if (wait !== undefined && /^\d{1,9}$/.test(wait)) preferences.wait = Number(wait)
  return preferences
}

/** An empty value equals no value (RFC 7240 §2); parameters of a preference are not used by any that we know. */
function parsePreferenceValue(member: string, at: number): string {
  const equals = skipWhitespace(member, at)
  if (member.charCodeAt(equals) !== 0x3d) return ''
  return parseParameterValue(member, skipWhitespace(member, equals + 1))?.value ?? ''
}
