import type { IncomingMessage, ServerResponse } from 'node:http'
import { Exchange } from '../core/exchange.ts'
import { readConditions } from '../core/fields.ts'
import { findExchange } from '../core/node-handler.ts'
import type { AddressFinder } from '../core/peer.ts'
import type { Place } from '../core/place.ts'
import type { ByteRange } from '../protocol/byte-range.ts'
import { type MediaType, NO_PARAMETERS } from '../protocol/media-type.ts'
import type { Conditions, Validators } from '../protocol/preconditions.ts'
import { type Preferences, parsePrefer } from '../protocol/prefer.ts'
import { formatPath, isSafeMethod } from '../protocol/request-line.ts'
import { UntilLeft } from '../stores/rules.ts'
import type { Page, ReadOptions, StoredResource, StoredState } from '../stores/types.ts'
import type { KeyedRequest } from './keyed-request.ts'
import type { Listing } from './listing.ts'
import type { Action, Route } from './route.ts'
import type { Scope } from './scope.ts'

const NO_PREFERENCES: Preferences = Object.freeze({})
const NO_PARAMS = readParams('', '')

/** What a service says about all its exchanges. */
interface ExchangeSettings {
  readonly mountPath: string | undefined
  readonly idleTimeout: number
  readonly findAddress: AddressFinder | undefined
}

/** A request to a resource of the service. */
export class ResourceExchange extends Exchange {
  /** The service that the exchange belongs to. */
  readonly settings: ExchangeSettings
  /** Set by the step that finds the route; every later step may rely on it. */
  route!: Route
  /** What the method does here; set with the route once the method is known to be allowed. */
  action!: Action
  isMalformed = false
  /** The path of the resource in the store. */
  storePath = ''
  /** What the store holds at that path; `undefined` before it was asked and when there is nothing. */
  state: StoredState = undefined
  /** The state, where it is a resource. */
  current: StoredResource | undefined = undefined
  /** Whether `state` has been read. A hook that needs it earlier than the pipeline makes it so. */
  isStateRead = false
  /** The softly deleted resource behind a state that says that the target is gone. */
  hidden: StoredResource | undefined = undefined
  /** The state of the item that a file belongs to; `undefined` before it was read and when there is none. */
  item: StoredState = undefined
  isItemRead = false
  /** When the parent was judged, by the clock of the service. */
  parentSeenAt = 0
  /** The 404 with which `authorize` hides the target. */
  concealed: Error | undefined = undefined
  /** Properties and values of the items that exist for the caller; `undefined` for all of them. */
  scope: Scope | undefined = undefined
  /** Whether the path that was read last has a resource that is out of scope. */
  isOutOfScope = false
  /** What a list is asked for; `undefined` before that is read. */
  listing: Listing | undefined = undefined
  /** The page of a collection that is being listed. */
  page: Page | undefined = undefined
  /** Validators of the selected representation; `undefined` when the target has none. */
  validators: Validators | undefined = undefined
  /** Media type of the content, in lower case, and its parameters. */
  contentType = ''
  /** Whether that type is JSON. */
  hasJson = false
  contentParameters: MediaType['parameters'] = NO_PARAMETERS
  /** Index of the selected rendition; -1 for the stored representation. */
  rendition = -1
  /** The content of the selected rendition. */
  rendered: Uint8Array | undefined = undefined
  /** The ranges to send; `undefined` for the whole. */
  ranges: readonly ByteRange[] | undefined = undefined
  /** Whether hidden resources are asked for. */
  wantsHidden = false
  /** Whether a condition of the request was met by the state that was read: the write must find that very state. */
  isConditional = false
  /** The version that If-Match names, where the write alone decides whether it is the current one. */
  foreseenVersion: string | undefined = undefined

  /** Set where the request has an Idempotency-Key that counts. */
  keyed: KeyedRequest | undefined = undefined

  #conditions: Conditions | undefined | null = null
  #preferences: Preferences | undefined
  #params: Readonly<Record<string, string>> | undefined

  constructor(req: IncomingMessage, res: ServerResponse, place: Place, settings: ExchangeSettings) {
    super(req, res, place)
    this.settings = settings
    this.idleTimeout = settings.idleTimeout
    if (settings.mountPath !== undefined) this.mount = settings.mountPath
    // A middleware that ran before may have found out who sends the request.
    const shared = findExchange(req)
    if (shared !== undefined) {
      this.principal = shared.principal
      this.isAmbient = shared.isAmbient
      this.sharing = shared.sharing
      this.sendContinue = shared.sendContinue
      this.verifier = shared.verifier
      this.findAddress = shared.findAddress
    }
    if (settings.findAddress !== undefined) this.findAddress = settings.findAddress
  }

  get conditions(): Conditions | undefined {
    return this.#conditions === null ? (this.#conditions = readConditions(this)) : this.#conditions
  }

  /** What the client would like; reading it is what makes a preference count. */
  get preferences(): Preferences {
    if (this.#preferences === undefined) {
      const prefer = this.field('prefer')
      this.#preferences = prefer === undefined ? NO_PREFERENCES : parsePrefer(prefer)
    }
    return this.#preferences
  }

  override get pattern(): string | undefined {
    // Not found yet, or none at all. A service without definitions has one route for all paths.
    return (this.route as Route | undefined)?.pattern || undefined
  }

  /** Whether a PUT may keep some of what it replaces: what is known of files stays, and `beforeWrite` may keep more. */
  get keepsState(): boolean {
    const { beforeWrite, describesFiles } = this.route
    return describesFiles || beforeWrite !== undefined
  }

  /**
   * Whether a response to PUT may have validators. They say that the content is stored as it was sent: where the server keeps
   * some of the state before, that the client had guessed it.
   */
  get mayTellTag(): boolean {
    const { authorize, readsNeedCredentials } = this.route
    const isForAll = authorize === undefined && readsNeedCredentials === false
    return !this.keepsState || isForAll || this.revealsState
  }

  /** Cache-Control for an answer from the definition, by where the principal came from (RFC 9111 §3.5). */
  get cacheControl(): string {
    return this.route.cacheControl[this.sharing]
  }

  override get revealsState(): boolean {
    const { method } = this
    if (isSafeMethod(method)) return false
    if (method === 'PATCH' || this.conditions !== undefined) return true
    const { deleteResponse, putResponse } = this.route
    if (method === 'PUT') return this.keepsState && (this.preferences.return ?? putResponse) === 'representation'
    return method === 'DELETE' && deleteResponse === 'representation' && this.preferences.return !== 'minimal'
  }

  // Few requests ask for the values in their path. Hooks for errors are called where no definition is for it as well.
  override get params(): Readonly<Record<string, string>> {
    const { pattern } = this
    return pattern === undefined ? NO_PARAMS : (this.#params ??= readParams(pattern, this.path))
  }
}

/** The values that a path has for the names of a pattern. */
export function readParams(pattern: string, path: string): Readonly<Record<string, string>> {
  const values = path.split('/')
  const params = Object.create(null) as Record<string, string>
  for (const [index, name] of pattern.split('/').entries()) {
    if (name.endsWith('...}')) params[name.slice(1, -4)] = values.slice(index).join('/')
    else if (name.startsWith('{')) params[name.slice(1, -1)] = values[index] ?? ''
  }
  return Object.freeze(params)
}

/** Path in the store of the collection that is the target: without the slash of the root. */
export function collectionPathOf({ storePath }: ResourceExchange): string {
  return storePath === '/' ? '' : storePath
}

/**
 * Whether the service takes a target that begins with the path of this request.
 * @param rest what follows after `?` or `/`: a query, or the name of an item
 */
export function fitsTarget({ path, route }: ResourceExchange, rest: string): boolean {
  return formatPath(path).length + 1 + rest.length <= route.context.maxTargetLength
}

/** What becomes of members that a schema does not know (RFC 7240 §4.4). */
export function unknownMembers(exchange: ResourceExchange): 'strip' | 'refuse' {
  return exchange.preferences.handling === 'strict' ? 'refuse' : 'strip'
}

/**
 * Preference-Applied for the preferences that had a part in the answer to a write (RFC 7240 §3).
 * @param answer `id` for content that is kept as it came: the answer says under which id, and nothing else
 */
export function appliedPreferences(exchange: ResourceExchange, answer: 'done' | 'accepted' | 'id' = 'done'): string[] {
  if (exchange.field('prefer') === undefined) return []
  const { hasJson, method, route } = exchange
  const { return: wanted, handling, respondAsync } = exchange.preferences
  const applied: string[] = []
  if (answer === 'done' && wanted !== undefined) applied.push(`return=${wanted}`)
  if (answer === 'accepted' && respondAsync === true) applied.push('respond-async')
  // A schema is for JSON, for what a form becomes, and for what a patch makes.
  const isChecked = hasJson || method === 'PATCH' || route.collection?.content === 'json'
  if (handling === 'strict' && route.schema !== undefined && isChecked) applied.push('handling=strict')
  return applied.length === 0 ? [] : ['Preference-Applied', applied.join(', ')]
}

/** What is read of a state: all of it is said, because a polluted `Object.prototype` would show what is hidden. */
export type Reading = Required<Pick<ReadOptions, 'hidden' | 'metadataOnly'>>

export const WHOLE: Reading = { hidden: false, metadataOnly: false }
export const METADATA: Reading = { hidden: false, metadataOnly: true }
/** Of a softly deleted one as well. */
export const HIDDEN: Reading = { hidden: true, metadataOnly: false }

/** Options of a read that ends when the client has left. */
export class ReadUntilLeft extends UntilLeft implements ReadOptions {
  readonly hidden: boolean
  readonly metadataOnly: boolean

  constructor(exchange: ResourceExchange, { hidden, metadataOnly }: Reading) {
    super(exchange)
    this.hidden = hidden
    this.metadataOnly = metadataOnly
  }
}
