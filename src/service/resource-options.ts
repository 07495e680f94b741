import { types } from 'node:util'
import type { AfterCommit, Authorize, BeforeWrite, ConflictHook, Outbox, Rendition } from '../actions/hook-types.ts'
import type { StandardSchema } from '../core/definition-types.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import {
  BOOLEAN,
  DURATION,
  FIELD_VALUE,
  FUNCTION,
  listOf,
  MEMBERS,
  oneOf,
  PRECONDITIONS,
  RECORD,
  shapedAs,
  TEXT,
  type ValueRule,
} from '../core/option-values.ts'
import type { OptionTable } from '../core/options.ts'
import { REQUIRE_RULE, type RequireRule } from '../handlers/authentication-options.ts'
import { isCacheControl } from '../protocol/cache-control.ts'
import { METHODS, type Method } from '../protocol/request-line.ts'

/**
 * Options of every kind of resource.
 * @typeParam Value what the schema gives, as hooks see it
 * @typeParam KindMethod the methods that the kind has
 */
export interface ResourceOptions<Value = JsonValue, KindMethod extends Method = Method> {
  /**
   * The methods that are allowed, of those that the kind has: GET and POST for a collection, GET, PUT, PATCH and DELETE for
   * a document, GET, PUT and PATCH for a singleton. Default: all of them. HEAD comes with GET; OPTIONS always.
   */
  readonly methods?: readonly (KindMethod | 'HEAD' | 'OPTIONS')[]
  /**
   * Any Standard Schema (zod, valibot, arktype …). Validates JSON bodies, forms and the results of patches; 422 otherwise.
   * It does not see the properties of the server: `id`, those of `files`, and `state` and `problem` of accepted items.
   * Default: none, any JSON is taken.
   */
  readonly schema?: StandardSchema<unknown, Value>
  /** Cache-Control of successful responses. Default: that of the service, `no-cache`. */
  readonly cacheControl?: string
  /**
   * `'required'`: changes of what exists need If-Match, If-None-Match or If-Unmodified-Since; 428 otherwise (RFC 6585
   * §3). Default `'optional'`.
   */
  readonly preconditions?: 'optional' | 'required'
  /**
   * Whether content needs a Content-Digest or Repr-Digest by sha-256 or sha-512 (RFC 9530): `'required'` answers 400 with
   * Want-Content-Digest otherwise. A digest that is sent is always verified: 400 where it differs. Default `'optional'`.
   */
  readonly digests?: 'optional' | 'required'
  /** Which requests need credentials, as in `auth`. Default: what the service's `auth.requireAuth` says. */
  readonly requireAuth?: RequireRule
  /** Who may do what; see {@link Authorize}. Default: the service's `auth.authorize`. */
  readonly authorize?: Authorize<Value>
  /** Refuses a PUT or a PATCH that conflicts with the current state (409); see {@link ConflictHook}. Default: none. */
  readonly conflict?: ConflictHook<Value>
  /**
   * Whether PATCH takes `application/json` as well, as a merge patch (RFC 7396), for clients that cannot name the format.
   * Default false: such a PATCH is 415.
   */
  readonly jsonAsMergePatch?: boolean
  /**
   * Changes JSON before it is stored: stamps an owner, a time, a number; see {@link BeforeWrite}. Only where `types` are
   * JSON types. Not called for the work's own changes of accepted items. Default: none.
   */
  readonly beforeWrite?: BeforeWrite<Value>
  /**
   * Gives resources that are written in the same atomic step as a change: an audit trail, messages to send; see
   * {@link Outbox}. Needs a store that supports `relatedExpect`, as all three of this package do. Default: none.
   */
  readonly outbox?: Outbox<Value>
  /**
   * Called once after each change, in the process that committed it. The response does not wait for it, and `close()` does.
   * After a crash between the commit and the call it is not called: what must not get lost belongs in the `outbox`.
   * Default: none.
   */
  readonly afterCommit?: AfterCommit<Value>
  /** The response to a PUT that replaces: 200 with the representation, or 204. Default `'none'`; of a singleton `'representation'`. */
  readonly putResponse?: 'representation' | 'none'
  /**
   * Honours Idempotency-Key: a POST, or a PATCH without a tag in If-Match, is carried out once, however often it is sent.
   * `'required'`: a request without the field is 400. `'optional'`: it is carried out as usual. Needs a store that supports
   * `relatedExpect`, as all three of this package do. Default: the field is ignored.
   */
  readonly idempotency?: 'optional' | 'required'
  /**
   * Milliseconds for which the response to a key is kept; `Infinity` keeps it for good. A request that comes later with the
   * same key is a new one. Default 24 hours.
   */
  readonly idempotencyRetention?: number
  /**
   * Further representations that are made from the stored one and offered by Accept, each `{ type, render }`. `render` gets
   * the whole content in memory: of content above 64 MiB, only the stored representation is offered. Default: none.
   */
  readonly representations?: readonly Rendition[]
  /**
   * The response where Accept matches no representation. `'strict'`: 406. `'lenient'`: the stored representation. Default
   * `'strict'` for JSON resources and with `representations`; `'lenient'` for content of any type and for files of items,
   * because many clients send an Accept that does not match them.
   */
  readonly accept?: 'strict' | 'lenient'
  /** The name of the resource in the OpenAPI description, in the singular: `User`. Default: its path. */
  readonly title?: string
  /** What the resource is, for readers of the OpenAPI description; CommonMark. Default: none. */
  readonly description?: string
  /** Representations by name, for the OpenAPI description: `{ ada: { id: 1, name: 'Ada' } }`. Default: none. */
  readonly examples?: Readonly<Record<string, JsonValue>>
  /**
   * JSON Schema of the content, for the OpenAPI description: one, or `{ input, output }` where requests and responses differ.
   * Default: that of the `schema`, where it has the Standard JSON Schema interface (zod, arktype).
   */
  readonly jsonSchema?: JsonObject | { readonly input: JsonObject; readonly output: JsonObject }
  /** Since when the resource is deprecated: responses carry Deprecation (RFC 9745). Default: it is not. */
  readonly deprecated?: Date | string
  /** When the resource goes away: responses carry Sunset (RFC 8594). Not before `deprecated`. Default: no such field. */
  readonly sunset?: Date | string
}

/** At least one method. */
export const SOME_METHODS: ValueRule = listOf(oneOf(...METHODS), 1)

export const CACHE_CONTROL: ValueRule = {
  accepts: (value) => FIELD_VALUE.accepts(value) && isCacheControl(value as string),
  text: "directives of Cache-Control, such as 'public, max-age=60'",
}

const SCHEMA: ValueRule = {
  accepts: (value) => typeof (value as Partial<StandardSchema> | null)?.['~standard']?.validate === 'function',
  text: 'a schema with the Standard Schema interface ("~standard")',
}

const DIRECTIONS = shapedAs({ input: 'object', output: 'object' })
/** One of a pair alone would be taken for a schema that says nothing. */
const JSON_SCHEMA: ValueRule = {
  accepts: (value) =>
    RECORD.accepts(value) &&
    (DIRECTIONS.accepts(value) || !['input', 'output'].some((name) => Object.hasOwn(value as object, name))),
  text: 'a JSON Schema, or { input, output } with both of them',
}

/** A date, as an object or in ISO 8601. */
const MOMENT: ValueRule = {
  accepts: (value) =>
    (types.isDate(value) || (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value))) &&
    !Number.isNaN(new Date(value).getTime()),
  text: 'a Date, or a date in ISO 8601 such as "2027-01-31"',
}

/** `completeRoute` has the defaults: some depend on the service and on the kind of resource. */
export const RESOURCE_OPTIONS: OptionTable<ResourceOptions> = {
  methods: SOME_METHODS,
  schema: SCHEMA,
  cacheControl: CACHE_CONTROL,
  preconditions: PRECONDITIONS,
  digests: oneOf('optional', 'required'),
  requireAuth: REQUIRE_RULE,
  authorize: FUNCTION,
  conflict: FUNCTION,
  jsonAsMergePatch: BOOLEAN,
  beforeWrite: FUNCTION,
  outbox: FUNCTION,
  afterCommit: FUNCTION,
  putResponse: oneOf('representation', 'none'),
  idempotency: oneOf('optional', 'required'),
  idempotencyRetention: DURATION,
  representations: listOf(shapedAs({ type: 'string', render: 'function' })),
  accept: oneOf('strict', 'lenient'),
  title: TEXT,
  description: TEXT,
  examples: MEMBERS,
  jsonSchema: JSON_SCHEMA,
  deprecated: MOMENT,
  sunset: MOMENT,
}

/** @throws TypeError for options that contradict each other, or have no effect beside each other */
export function checkResourceOptions(owner: string, options: Readonly<ResourceOptions>): void {
  const { deprecated, sunset } = options
  if (options.idempotencyRetention !== undefined && options.idempotency === undefined) {
    throw new TypeError(`${owner} has an idempotencyRetention, which needs idempotency: 'optional' or 'required'.`)
  }
  // RFC 9745 §4: the Sunset date must not be earlier than the Deprecation date.
  if (deprecated !== undefined && sunset !== undefined && new Date(sunset) < new Date(deprecated)) {
    throw new TypeError(`${owner} has a sunset before the date since when it is deprecated.`)
  }
}

/** @throws TypeError for a method that this kind of resource never has: asking for it would have no effect */
export function checkMethods(
  owner: string,
  option: string,
  given: readonly Method[] | undefined,
  has: readonly Method[],
): void {
  const wrong = given?.find((method) => !has.includes(method) && method !== 'HEAD' && method !== 'OPTIONS')
  if (wrong !== undefined) {
    throw new TypeError(`${owner} has no ${wrong} in its ${option}: they are ${has.join(', ')}.`)
  }
  if (given?.includes('HEAD') && !given.includes('GET')) {
    throw new TypeError(`${owner} has HEAD in its ${option} without GET, with which it comes.`)
  }
}
