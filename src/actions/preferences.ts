import type { ResourceExchange } from './resource-exchange.ts'

/** What Prefer says about the content of an answer to a write (RFC 7240 §4.2). */
export function preferredReturn({ preferences }: ResourceExchange): 'minimal' | 'representation' | undefined {
  return preferences.return
}

/** What becomes of members that a schema does not know (RFC 7240 §4.4). */
export function unknownMembers(exchange: ResourceExchange): 'strip' | 'refuse' {
  return exchange.preferences.handling === 'strict' ? 'refuse' : 'strip'
}

/** Preference-Applied for the preferences that had a part in the answer to a write (RFC 7240 §3). */
export function appliedPreferences(exchange: ResourceExchange, answer: 'done' | 'accepted' = 'done'): string[] {
  if (exchange.field('prefer') === undefined) return []
  const { return: wanted, handling, respondAsync } = exchange.preferences
  const applied: string[] = []
  if (answer === 'done' && wanted !== undefined) applied.push(`return=${wanted}`)
  if (answer === 'accepted' && respondAsync === true) applied.push('respond-async')
  if (handling === 'strict' && exchange.route.schema !== undefined && exchange.method !== 'DELETE') {
    applied.push('handling=strict')
  }
  return applied.length === 0 ? [] : ['Preference-Applied', applied.join(', ')]
}
