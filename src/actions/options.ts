import { emptyReply, type Reply } from '../core/reply.ts'
import { formatAllow, METHODS } from '../protocol/methods.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'

/** OPTIONS on a resource: what it can do (RFC 9110 §9.3.7). */
export function options({ route }: ResourceExchange): Reply {
  return emptyReply(204, [...route.capabilities, 'Cache-Control', 'no-cache'])
}

/** OPTIONS *: what the server can do, not any resource. */
export function serverOptions(): Reply {
  return emptyReply(204, ['Allow', formatAllow(METHODS), 'Cache-Control', 'no-cache'])
}

/** The fields that tell a client what a resource takes, derived from its actions. */
export function capabilitiesOf(route: Pick<Route, 'actions' | 'methods' | 'collection'>): readonly string[] {
  const fields = ['Allow', route.methods.join(', ')]
  for (const method of ['POST', 'PATCH'] as const) {
    const content = route.actions[method]?.content
    if (content !== undefined) fields.push(content.hint, content.types.join(', '))
  }
  // A listing is sent whole; where any path may be one, another may be a resource.
  const isListing = route.collection !== undefined && route.collection.content !== 'any'
  if (route.actions.GET !== undefined && !isListing) fields.push('Accept-Ranges', 'bytes')
  return fields
}
