import { emptyReply, type Reply } from '../core/reply.ts'
import { formatAllow, METHODS, METHODS_AND_QUERY } from '../protocol/methods.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'

/** OPTIONS on a resource: what it can do (RFC 9110 §9.3.7). */
export function options({ route }: ResourceExchange): Reply {
  return emptyReply(204, [...route.capabilities, 'Cache-Control', 'no-cache'])
}

/** OPTIONS *: what the server can do, not any resource. */
export function serverOptions({ hasQuery }: { readonly hasQuery: boolean }): Reply {
  const methods = hasQuery ? METHODS_AND_QUERY : METHODS
  return emptyReply(204, ['Allow', formatAllow(methods), 'Cache-Control', 'no-cache'])
}

/** The fields that tell a client what a resource takes, derived from its actions. */
export function capabilitiesOf(route: Pick<Route, 'actions' | 'methods' | 'collection'>): readonly string[] {
  const fields = ['Allow', route.methods.join(', ')]
  for (const method of ['POST', 'PATCH'] as const) {
    const content = route.actions[method]?.content
    if (content !== undefined) fields.push(content.hint, content.types.join(', '))
  }
  fields.push(...acceptQueryOf(route.actions))
  // A listing is sent whole; where any path may be one, another may be a resource.
  const isListing = route.collection !== undefined && route.collection.content !== 'any'
  if (route.actions.GET !== undefined && !isListing) fields.push('Accept-Ranges', 'bytes')
  return fields
}

/** Accept-Query, a list of the media types that QUERY takes (RFC 10008 §3); nothing for a route without QUERY. */
export function acceptQueryOf({ QUERY }: Route['actions']): readonly string[] {
  return QUERY?.content === undefined ? [] : ['Accept-Query', QUERY.content.types.join(', ')]
}
