import { splitList } from './field-value.ts'

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
  const name = nameOf(directive)
  return name === 'public' || name === 's-maxage'
}

/** Whether no shared cache keeps the answer. `private` with a list of fields is about these fields only. */
function isUnshared(directive: string): boolean {
  return /^(?:private|no-store)$/i.test(directive)
}

function nameOf(directive: string): string {
  return directive.split('=')[0]!.trim().toLowerCase()
}
