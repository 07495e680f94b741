import { AsyncResource } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { type Principal, withoutClaims } from '../core/request-view.ts'
import { splitPath } from '../stores/rules.ts'
import type { RelatedWrite, StoredResource } from '../stores/types.ts'
import { readOutbox } from './change-hooks.ts'
import type { Change, ChangeKind, ChangeState, CurrentState } from './hook-types.ts'
import { entityTagOf } from './representation.ts'
import { type ResourceExchange, readParams } from './resource-exchange.ts'
import { fetchJson, parseStored } from './resource-view.ts'
import type { Route } from './route.ts'
import { idOf } from './validation.ts'

/** Who makes a change. */
interface ChangeSource {
  readonly principal: Principal | undefined
  readonly request: Exchange | undefined
}

/** A change that is not committed yet, with the hooks of its definition. */
export interface PendingChange {
  /**
   * What the outbox writes with it, for stores; `undefined` where the definition has no outbox. Runs in the asynchronous
   * context of the request, wherever the store calls it.
   * @param path of the resource that changes
   * @param after the new state, as far as it is known before it is written; `undefined` for a removal
   */
  readonly writes: ((path: string, after: StoredResource | undefined) => readonly RelatedWrite[]) | undefined
  /** Calls `afterCommit`, after the response is decided. @param path of the resource that has changed */
  commit(path: string, after: StoredResource | undefined): void
}

/** A state with its content at hand where hooks may ask for its value: once it is replaced, it cannot be read any more. */
export function readForHooks(exchange: ResourceExchange, resource: StoredResource): MaybePromise<StoredResource> {
  const { route } = exchange
  if (route.beforeWrite === undefined && !route.observesChanges) return resource
  return fetchJson(resource, route.context.limits.bodySize, exchange)
}

/**
 * Begins a change.
 * @param route of the resource, or of the collection that it becomes a member of
 * @param before the state that is replaced or removed
 * @returns `undefined` where no hook sees changes
 */
export function beginChange(
  route: Route,
  kind: ChangeKind,
  before: StoredResource | undefined,
  source: ChangeSource,
): PendingChange | undefined {
  if (!route.observesChanges) return undefined
  const { outbox, afterCommit, context } = route
  // The hook runs when the client may have left: then nothing tells its address any more.
  if (afterCommit !== undefined) void source.request?.clientAddress
  let change: Change | undefined
  const makeChange = (path: string, after: StoredResource | undefined): Change =>
    createChange(route, kind, path, before, after, source)
  return {
    writes:
      outbox &&
      AsyncResource.bind((path: string, after: StoredResource | undefined) => {
        change = makeChange(path, after)
        return readOutbox(route, outbox, change)
      }),

    commit(path, after) {
      if (afterCommit === undefined) return
      // The change that the outbox was shown: its id stands in what the outbox wrote.
      context.afterCommits.announce(() => afterCommit(change ?? makeChange(path, after)), source.request)
    },
  }
}

/** The same for the request that an exchange is. */
export function beginRequestedChange(
  exchange: ResourceExchange,
  kind: ChangeKind,
  before: StoredResource | undefined,
): PendingChange | undefined {
  return beginChange(exchange.route, kind, before, { principal: exchange.principal, request: exchange })
}

function createChange(
  route: Route,
  kind: ChangeKind,
  path: string,
  before: StoredResource | undefined,
  after: StoredResource | undefined,
  { principal, request }: ChangeSource,
): Change {
  const { context } = route
  const limit = context.limits.bodySize
  // A collection changes in its items, which have a pattern of their own.
  const own = route.collection === undefined ? route : (context.findRoute(path) ?? route)
  const at = new Date(context.now())
  const change: Omit<Change, 'toJSON'> = {
    eventId: createEventId(),
    kind,
    path,
    params: readParams(own.pattern, path),
    id: own.kind === 'item' ? idOf(splitPath(path).name, own.idMember ?? 'integer') : undefined,
    before: before && viewChanged(before, limit),
    after: after && viewChanged(after, limit),
    principal,
    request,
    at,
  }
  return { ...change, toJSON: () => toPlain(change) }
}

/** A state as hooks see it before or after a change. @param limit the most bytes that are parsed */
export function viewChanged(resource: StoredResource, limit: number): ChangeState {
  return new ChangedState(resource, limit, () => undefined)
}

/** The state that a write replaces, whose value has to be there: to read it throws HttpError 409 otherwise. */
export function viewReplaced(resource: StoredResource, limit: number): CurrentState {
  return new ChangedState<JsonValue>(resource, limit, () => {
    throw new HttpError(409, 'ERR_CONFLICT', {
      detail: 'The current content of the resource is not JSON, or too large to be parsed; remove it first.',
    })
  })
}

/** A state whose value is parsed when it is first read. A copy has the value; all states share one accessor. */
class ChangedState<Value extends JsonValue | undefined> {
  readonly #resource: StoredResource
  readonly #limit: number
  readonly #replace: () => Value
  #parsed: { readonly value: JsonValue | undefined } | undefined
  readonly version: string
  readonly tag: string | undefined
  readonly contentType: string
  readonly size: number
  declare readonly value: Value

  /** @param replace gives the value of content that is not JSON or too large */
  constructor(resource: StoredResource, limit: number, replace: () => Value) {
    this.#resource = resource
    this.#limit = limit
    this.#replace = replace
    this.version = resource.version
    this.tag = entityTagOf(resource)
    this.contentType = resource.contentType
    this.size = resource.size
    Object.defineProperty(this, 'value', ChangedState.VALUE)
  }

  private static readonly VALUE: PropertyDescriptor & ThisType<ChangedState<JsonValue | undefined>> = {
    get() {
      this.#parsed ??= { value: this.size > this.#limit ? undefined : parseStored(this.#resource) }
      const { value } = this.#parsed
      return value === undefined ? this.#replace() : value
    },
    enumerable: true,
  }
}

function toPlain({ request: _, principal, at, ...facts }: Omit<Change, 'toJSON'>): JsonObject {
  // Through text, so that it has neither getters nor properties that are undefined.
  return JSON.parse(JSON.stringify({ ...facts, principal: withoutClaims(principal), at })) as JsonObject
}

/** Milliseconds of the last id, and how many ids were made in them. */
let last = 0
let count = 0
/** 12 bits. */
const MOST = 0x1000

/**
 * A UUID of version 7 (RFC 9562 §5.7): unique, and greater than every one that this process has made before, also when the
 * clock goes back. Module state, because ids ascend across all services of a process.
 */
function createEventId(): string {
  const now = Date.now()
  if (now > last) {
    last = now
    count = 0
  } else if (++count === MOST) {
    last++
    count = 0
  }
  const time = last.toString(16).padStart(12, '0')
  const bytes = randomBytes(8)
  bytes[0] = (bytes[0]! & 0x3f) | 0x80
  const random = bytes.toString('hex')
  const order = (0x7000 | count).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-${order}-${random.slice(0, 4)}-${random.slice(4)}`
}
