import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { pause } from '../core/time.ts'
import { MAX_ATTEMPTS, PATIENT_ATTEMPTS } from '../core/turns.ts'
import { isExpected, isResource, UntilLeft } from '../stores/rules.ts'
import type {
  Content,
  Expectation,
  NewState,
  RelatedWrite,
  RemoveOptions,
  RemoveResult,
  ResourceStore,
  StoredResource,
  StoredState,
  WriteConflict,
  WriteOptions,
  WriteResult,
} from '../stores/types.ts'
import { requireAuthorization } from './authorization.ts'
import type { PendingChange } from './changes.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { checkConditions, setState } from './state.ts'
import { requireParent } from './target-steps.ts'
import { foresee, withContent } from './write-hooks.ts'

interface Outcome {
  readonly outcome: string
}

type Attempt<Result> = () => MaybePromise<Result>
type Won<Result extends Outcome> = Exclude<Result, { outcome: 'conflict' }>

/**
 * Runs a compare-and-swap until it is won. A lost race is judged anew against the state that won it: authorisation and
 * conditions first (403, 412), then the next attempt, so that no update is lost and none happens on a state that was not
 * allowed by the hooks.
 *
 * The requests of this process that change one resource take turns. To be called once the content is here: a client that
 * sends slowly would make all others wait.
 * @param attempt makes one attempt, from the state on the exchange
 * @throws HttpError 409 when the resource keeps changing; 503 when too many requests wait for their turn
 */
export function commit<Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Result>,
): MaybePromise<Won<Result>> {
  const { storePath, isStateRead, route } = exchange
  return route.context.turns.take(
    storePath,
    (entry) => {
      if (entry === 'at-once') return commitWithoutTurn(exchange, attempt)
      return andThen(judgeAnew(exchange), () => commitWithoutTurn(exchange, attempt))
    },
    // A write that depends on no state wins at its first attempt.
    isStateRead ? 'refuse' : 'go-on',
    exchange,
  )
}

/** The same without a turn, for content that is still on its way. @see commit */
export function commitWithoutTurn<Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Result>,
  attempts = 1,
): MaybePromise<Won<Result>> {
  return andThen(attempt(), (result) => winOrRetry(exchange, attempt, attempts, result))
}

function winOrRetry<Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Result>,
  attempts: number,
  result: Result,
): MaybePromise<Won<Result>> {
  if (result.outcome !== 'conflict') return result as Won<Result>
  if (attempts === MAX_ATTEMPTS) {
    throw new HttpError(409, 'ERR_CONFLICT', { detail: 'Other requests keep changing the resource.' })
  }
  // Who has written meanwhile may be who has the parent by now.
  exchange.parentSeenAt = Number.NEGATIVE_INFINITY
  const attemptAgain = () => commitWithoutTurn(exchange, attempt, attempts + 1)
  const isParentMissing = (result as Partial<WriteConflict>).missing !== undefined
  if (isParentMissing || attempts >= PATIENT_ATTEMPTS || exchange.scope !== undefined) {
    // The state of before the pause is not the current one any more, and what a store says of one is not in scope yet.
    const paused = attempts >= PATIENT_ATTEMPTS ? pause(attempts) : Promise.resolve()
    return paused.then(() => judgeAnew(exchange)).then(attemptAgain)
  }
  const wasForeseen = exchange.foreseenVersion !== undefined
  setState(exchange, (result as unknown as { readonly current: StoredState }).current)
  // 404 and 410 come before the condition; this is the first look at a state that was foreseen.
  const loaded = andThen(requireParent(exchange), () => (wasForeseen ? exchange.action.load(exchange) : undefined))
  return andThen(loaded, () =>
    andThen(requireAuthorization(exchange), () => {
      checkConditions(exchange)
      return attemptAgain()
    }),
  )
}

/** Reads the current state and judges the request by it, in the order in which it was judged first. */
function judgeAnew(exchange: ResourceExchange): MaybePromise<void> {
  exchange.isStateRead = false
  exchange.isItemRead = false
  return andThen(requireParent(exchange), () =>
    andThen(requireAuthorization(exchange), () =>
      andThen(exchange.action.load(exchange), () => void checkConditions(exchange)),
    ),
  )
}

/** What is written beside a change, for another reason than its outbox. */
export interface Beside {
  readonly writes: (state: NewState) => readonly RelatedWrite[]
  /** The one of these paths that must be absent; a conflict with it is the caller's to deal with. */
  readonly absent: string
}

/**
 * Writes a path and what its outbox gives in one atomic step, and announces the change once it is committed.
 * @param options made for this call: they get what is written beside the path
 * @param change `undefined` where no hook sees changes
 * @throws HttpError 409 where a path of the outbox must be absent and is not
 */
export function writeChange(
  store: ResourceStore,
  path: string,
  content: Content,
  options: WriteOptions,
  change: PendingChange | undefined,
  beside?: Beside,
): MaybePromise<WriteResult> {
  const outbox = change?.writes
  if (outbox !== undefined || beside !== undefined) {
    const { related = NO_RELATED_WRITES } = options
    const relatedTo = (state: NewState): readonly RelatedWrite[] => {
      const others = beside === undefined ? related : [...related, ...beside.writes(state)]
      return outbox === undefined ? others : [...others, ...outbox(path, foresee(path, content, state))]
    }
    // Not copied: the signal would be made, which costs a sixth of a small PUT.
    Object.assign(options, { related: undefined, relatedTo })
  }
  const written = store.write(path, content, options)
  if (change === undefined) return written
  return andThen(written, (result) => {
    if (result.outcome === 'conflict') return judgeConflict(result, options.expect, beside?.absent)
    const after = withContent(result.resource, () => content)
    change.commit(path, after)
    return result
  })
}

/**
 * Removes the state that the hooks are shown, and writes what the outbox gives in the same atomic step.
 * @param options made for this call: they get what is written beside the removal
 * @throws HttpError 409 where a path of the outbox must be absent and is not
 */
export function removeChange(
  store: ResourceStore,
  { path, version }: StoredResource,
  options: RemoveOptions,
  change: PendingChange,
): MaybePromise<RemoveResult> {
  const relatedWrites = change.writes?.(path, undefined) ?? NO_RELATED_WRITES
  const own = Object.assign(options, { expect: { version }, relatedWrites })
  return andThen(store.remove(path, own), (result) => {
    if (result.outcome === 'conflict') return judgeConflict(result, own.expect, undefined)
    if (result.outcome === 'removed') change.commit(path, undefined)
    return result
  })
}

/**
 * Judges a conflict of a change. Where its own state is another one by now, who was faster may have put there what is in the
 * way of the outbox: the change is judged anew then.
 * @param expect the state that the change is for
 * @param other the path that must be absent for another reason than the outbox
 * @throws HttpError 409 where a path of the outbox must be absent and is not
 */
export function judgeConflict(conflict: WriteConflict, expect: Expectation, other: string | undefined): WriteConflict {
  const { related, current } = conflict
  if (related === undefined || related.path === other) return conflict
  if (!isExpected(isResource(current) ? current.version : undefined, expect)) return { outcome: 'conflict', current }
  throw new HttpError(409, 'ERR_CONFLICT', { detail: 'Another resource is in the way of the change.' })
}

/** What every write is given that has nothing beside it: a store would otherwise find what pollutes every object, and write that. */
export const NO_RELATED_WRITES: readonly RelatedWrite[] = Object.freeze([])

/** Options of a write that ends when the client has left. */
export class WriteUntilLeft extends UntilLeft implements WriteOptions {
  readonly expect: Expectation
  readonly requires: string | undefined
  readonly related: readonly RelatedWrite[] = NO_RELATED_WRITES

  constructor(exchange: ResourceExchange, expect: Expectation, requires: string | undefined) {
    super(exchange)
    this.expect = expect
    this.requires = requires
  }
}
