import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { describeValue } from '../core/option-values.ts'
import { isLargeBody, isResource, isStaged, sizeOf } from '../stores/rules.ts'
import type {
  Content,
  ContentFields,
  Expectation,
  NewState,
  SmallBody,
  StoredResource,
  StoredState,
} from '../stores/types.ts'
import { HIDDEN, ReadUntilLeft, type ResourceExchange } from './resource-exchange.ts'
import { fetchJson, StateView } from './resource-view.ts'
import type { Route } from './route.ts'
import { readInScope, refuseTaken, tombstoneOf } from './scope.ts'
import { setState } from './state.ts'

/** The state that a write replaces, as it was seen: the write happens on no other. */
export interface SeenState {
  /** The resource, one that is softly deleted as well; its content is at hand where it is JSON that may be parsed. */
  readonly resource: StoredResource | undefined
  readonly expect: Exclude<Expectation, 'any' | 'present'>
}

/**
 * Reads the state that PUT is about to replace.
 * @returns `undefined` where it is another one than was judged; the exchange has it then
 */
export function readSeenState(exchange: ResourceExchange): MaybePromise<SeenState | undefined> {
  const { describesFiles, context } = exchange.route
  // A form may have made it larger than what is taken at once, and what it says of its files stays.
  const limit = describesFiles ? Number.POSITIVE_INFINITY : context.limits.bodySize
  // What the server keeps of a softly deleted item comes back with it.
  return andThen(readInScope(exchange, exchange.storePath, new ReadUntilLeft(exchange, HIDDEN)), (state) => {
    refuseTaken(exchange)
    if (isJudgedAnew(exchange, state)) return undefined
    if (!isResource(state)) return { resource: undefined, expect: 'absent' }
    const expect = state.hidden === true ? 'absent' : { version: state.version }
    return andThen(fetchJson(state, limit, exchange), (resource) => ({ resource, expect }))
  })
}

/** Takes a state as the current one. @returns whether another one was judged before */
function isJudgedAnew(exchange: ResourceExchange, state: StoredState): boolean {
  const shown = isResource(state) && state.hidden === true ? tombstoneOf(exchange, state) : state
  const version = isResource(shown) ? shown.version : undefined
  const isOther = exchange.isStateRead && exchange.current?.version !== version
  if (isOther || !exchange.isStateRead) setState(exchange, shown)
  return isOther
}

/**
 * A state that is about to be written, without its dates. Of content that is not at hand the answer shows nothing.
 * @throws TypeError for a store that supports `relatedExpect` and does not say how the state will be called
 */
export function foresee(
  path: string,
  { body, contentType, contentLanguage, filename }: ContentFields & { readonly body: Content['body'] },
  state: NewState | undefined,
): StoredResource {
  if (state === undefined) throw new TypeError('The store supports relatedExpect and passes no new state to related.')
  const small: SmallBody = typeof body === 'string' || body instanceof Uint8Array ? body : ''
  const size = isStaged(body) ? body.size : sizeOf(small)
  return { path, ...state, contentType, contentLanguage, filename, size, body: small }
}

/** A state that has been written, with its content at hand where that was written at once and the store gives it in pieces. */
export function withContent(resource: StoredResource, content: () => Content): StoredResource {
  if (!isLargeBody(resource.body)) return resource
  const { body } = content()
  return typeof body === 'string' || body instanceof Uint8Array ? { ...resource, body } : resource
}

const UNWRITTEN: NewState = { version: '' }

/**
 * Asks `conflict` of the definition about a change of its resource. The write that follows has to insist on `current`.
 * @param path of the resource
 * @param current the state that the change replaces; `undefined` where it creates
 * @throws HttpError 409 with the sentence that the hook gives; TypeError for a verdict of another kind
 */
export function checkConflict(
  exchange: ResourceExchange,
  path: string,
  content: Content,
  current: StoredResource | undefined,
  route: Route = exchange.route,
): MaybePromise<void> {
  const { conflict, context } = route
  if (conflict === undefined) return undefined
  const { bodySize } = context.limits
  const proposed = new StateView(foresee(path, content, UNWRITTEN), bodySize)
  const verdict = andThen(current && fetchJson(current, bodySize, exchange), (state) =>
    conflict(proposed, state && new StateView(state, bodySize), exchange),
  )
  return andThen(verdict, (detail) => {
    if (detail === undefined) return
    if (typeof detail === 'string') throw new HttpError(409, 'ERR_CONFLICT', { detail })
    throw new TypeError(
      `conflict of ${route.definition} must return a sentence for the client, or undefined for no conflict, not ${describeValue(detail)}.`,
    )
  })
}
