import { isToken, parseParameterValue, skipToken, splitList } from './field-value.ts'

/** Whether text is a list of directives (RFC 9111 §5.2): `max-age=60`, not `max-age: 60`. */
export function isCacheControl(text: string): boolean {
  return splitList(text).every((directive) => {
    const end = skipToken(directive, 0)
    if (end === directive.length) return isToken(directive)
    const value = directive[end] === '=' && end > 0 ? parseParameterValue(directive, end + 1) : undefined
    return value?.end === directive.length
  })
}

/** What caches may do with an answer, by where the principal of its request came from. */
export type Sharing =
  /** No principal had a part in it. */
  | 'public'
  /** From Authorization: shared caches keep the answer only where Cache-Control says that they may (RFC 9111 §3.5). */
  | 'authorized'
  /** From elsewhere, a cookie for instance, where no cache sees it: the answer is always marked `private`. */
  | 'private'

/** Cache-Control for each {@link Sharing}. */
export type CacheControls = Readonly<Record<Sharing, string>>

/**
 * The value of Cache-Control of an answer (RFC 9111 §5.2.2).
 * @param configured what a definition or a route says; `undefined` where it says nothing: `no-cache`
 */
export function formatCacheControl(configured: string | undefined, sharing: Sharing): string {
  if (sharing === 'public') return configured ?? 'no-cache'
  if (configured === undefined) return 'private, no-cache'
  const directives = splitList(configured)
  if (sharing === 'authorized') {
    const isOpen =
      directives.some(isSharing) || !directives.some((directive) => nameOf(directive) === 'must-revalidate')
    // Alone, `must-revalidate` lets shared caches keep the answer without saying so in so many words (RFC 9111 §3.5).
    return isOpen || directives.some(isUnshared) ? configured : `private, ${configured}`
  }
  const kept = directives.filter((directive) => !isSharing(directive))
  const text = kept.length === directives.length ? configured : kept.join(', ')
  if (kept.some(isUnshared)) return text
  return text === '' ? 'private' : `private, ${text}`
}

/** {@link formatCacheControl} for each {@link Sharing}. */
export function formatCacheControls(configured: string | undefined): CacheControls {
  return {
    public: formatCacheControl(configured, 'public'),
    authorized: formatCacheControl(configured, 'authorized'),
    private: formatCacheControl(configured, 'private'),
  }
}

/**
 * Adds `no-transform` (RFC 9111 §5.2.2.6), unless it is there. A part of a representation must not be transformed:
 * a compressor between would send another fragment under the same entity tag.
 * @param value of Cache-Control; empty for none
 */
export function addNoTransform(value: string): string {
  if (value === '') return 'no-transform'
  return splitList(value).some((directive) => nameOf(directive) === 'no-transform') ? value : `${value}, no-transform`
}

/** Whether a directive says that shared caches keep the answer. */
function isSharing(directive: string): boolean {
  return /^(?:public|s-maxage)$/.test(nameOf(directive))
}

/** Whether no shared cache keeps the answer. `private` with a list of fields is about these fields only. */
function isUnshared(directive: string): boolean {
  return /^(?:private|no-store)$/i.test(directive)
}

function nameOf(directive: string): string {
  return directive.split('=')[0]!.trim().toLowerCase()
}

/** Directives that ask for care: one that either value has counts. */
const CAREFUL = ['private', 'no-cache', 'must-revalidate', 'proxy-revalidate', 'must-understand', 'no-transform']
/** Directives that allow more than the default: they count where both values have them. */
const GENEROUS = ['public', 'immutable']

/**
 * The Cache-Control of content that is made of two parts with values of their own (RFC 9111 §5.2.2): nothing may be done
 * with it that either forbids. Directives that are not known are left out.
 */
export function mergeCaching(a: string, b: string): string {
  if (a === b) return a
  const [left, right] = [parseDirectives(a), parseDirectives(b)]
  if (left.has('no-store') || right.has('no-store')) return 'no-store'
  const merged = CAREFUL.filter((name) => left.has(name) || right.has(name))
  const isPrivate = merged.includes('private')
  if (!isPrivate) merged.push(...GENEROUS.filter((name) => left.has(name) && right.has(name)))
  // `no-cache` leaves no time for which an answer is used unasked.
  if (merged.includes('no-cache')) return merged.filter((name) => name !== 'immutable').join(', ')
  // The shorter time counts. Without a time caches guess one (RFC 9111 §4.2.2), which is seldom as long.
  const own = [left, right].map((directives) => timeOf(directives, 'max-age'))
  const shared = [left, right].map((directives) => timeOf(directives, 's-maxage'))
  // It also says that shared caches keep answers for users (RFC 9111 §3.5): both must say so.
  const isShared = !isPrivate && !shared.includes(undefined)
  const time = Math.min(...[...own, ...(isShared ? [] : shared)].filter((time) => time !== undefined))
  if (time !== Number.POSITIVE_INFINITY) merged.push(`max-age=${time}`)
  if (isShared) merged.push(`s-maxage=${Math.min(...(shared as number[]))}`)
  return merged.join(', ')
}

/** Seconds; a malformed time is none (RFC 9111 §4.2.1). */
function timeOf(directives: ReadonlyMap<string, string>, name: string): number | undefined {
  const text = directives.get(name)
  if (text === undefined) return undefined
  return /^\d{1,10}$/.test(text) ? Number(text) : 0
}

function parseDirectives(value: string): ReadonlyMap<string, string> {
  return new Map(
    splitList(value).map((directive) => {
      const [name = '', argument = ''] = directive.split('=', 2)
      return [name.trim().toLowerCase(), argument.trim().replaceAll('"', '')]
    }),
  )
}
