import { isJsonObject } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { isResource } from '../stores/types.ts'
import { parseStored } from './hooks.ts'
import { listReply, loadPage } from './list.ts'
import { redirectReply } from './redirect.ts'
import { renditionReply } from './rendition.ts'
import { representationReply } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { neededOf, readState, requirePresent } from './state.ts'

/** GET and HEAD: the selected representation of the state that was read. */
export function get(exchange: ResourceExchange): MaybePromise<Reply> {
  if (exchange.page !== undefined) return listReply(exchange, exchange.page)
  const { current, route } = exchange
  if (exchange.rendition >= 0) return renditionReply(exchange, current!)
  const redirect = redirectReply(exchange, current!)
  if (redirect !== undefined) return redirect
  const reply = representationReply(exchange, current!)
  if (!route.showsWork) return reply
  // Accepted work that is not done: when to look again (RFC 9110 §10.2.3).
  const value = parseStored(current!)
  const isPending = isJsonObject(value) && (value['state'] === 'pending' || value['state'] === 'running')
  return isPending ? { ...reply, headers: [...reply.headers, 'Retry-After', '1'] } : reply
}

/** Finds what a path of the open service holds: a resource, or else the members below it. */
export function loadResourceOrMembers(exchange: ResourceExchange): MaybePromise<void> {
  return andThen(readState(exchange, neededOf(exchange)), () => {
    if (isResource(exchange.state)) return undefined
    return andThen(loadPage(exchange), () => {
      if (exchange.page!.items.length > 0) return
      exchange.page = undefined
      requirePresent(exchange)
    })
  })
}
