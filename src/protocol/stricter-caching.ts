import { splitList } from './field-value.ts'

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
