import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { type Expectation, isResource, type StoredResource, type StoredState } from '../stores/types.ts'
import { fetchJson } from './hooks.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { readInScope, refuseTaken } from './scope.ts'
import { setState } from './state.ts'
import { ReadUntilLeft } from './store-options.ts'

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
  const { limits } = exchange.route.context
  // What the server keeps of a softly deleted item comes back with it.
  return andThen(readInScope(exchange, exchange.storePath, new ReadUntilLeft(exchange, { hidden: true })), (state) => {
    refuseTaken(exchange)
    if (isJudgedAnew(exchange, state)) return undefined
    if (!isResource(state)) return { resource: undefined, expect: 'absent' }
    const expect = state.hidden === true ? 'absent' : { version: state.version }
    return andThen(fetchJson(state, limits.bodySize, exchange), (resource) => ({ resource, expect }))
  })
}

/** Takes a state as the current one. @returns whether another one was judged before */
function isJudgedAnew(exchange: ResourceExchange, state: StoredState): boolean {
  const visible = visibleOf(state)
  const isOther = exchange.isStateRead && exchange.current?.version !== visible?.version
  if (isOther || !exchange.isStateRead) setState(exchange, visible ?? tombstoneOf(exchange, state))
  return isOther
}

function visibleOf(state: StoredState): StoredResource | undefined {
  return isResource(state) && state.hidden !== true ? state : undefined
}

function tombstoneOf(exchange: ResourceExchange, state: StoredState): StoredState {
  if (!isResource(state)) return state
  return { removed: true, path: state.path, removedAt: state.lastModified ?? exchange.route.context.now() }
}
