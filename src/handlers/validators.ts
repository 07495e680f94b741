import { types } from 'node:util'
import type { Exchange } from '../core/exchange.ts'
import { describeValue, hasProperties, quoteValue } from '../core/option-values.ts'
import { readProperty } from '../core/options.ts'
import { formatHttpDate } from '../protocol/dates.ts'
import { isFieldValue } from '../protocol/field-value.ts'
import { dateToSend, isEntityTag, isSecondOver, type Validators } from '../protocol/preconditions.ts'

/** The validators of a current representation, as a route knows them. */
export interface KnownValidators {
  /** A whole entity tag: `"abc"`, or `W/"abc"` where equal tags do not mean equal bytes. */
  readonly entityTag?: string | undefined
  /** When the representation changed last: a Date, or milliseconds since the epoch. */
  readonly lastModified?: Date | number | undefined
  /**
   * Whether it changed once only in that second. Default: whether that second is over by the local clock, which proves
   * little where other machines, with clocks of their own, write as well.
   */
  readonly dateIsStrong?: boolean | undefined
}

/** Validators, and the field that has to be the same on 200 and 304 (RFC 9110 §15.4.5). */
export interface KnownState extends KnownValidators {
  /** Cache-Control of the response. */
  readonly cacheControl?: string | undefined
}

const remembered = new WeakMap<Exchange, Validators>()

/** Keeps the validators for a middleware further on, so that a route need not name them twice. */
export function rememberValidators(exchange: Exchange, validators: Validators): void {
  remembered.set(exchange, validators)
}

/** The validators that a route names or, when it names none, those that a middleware before has been given. */
export function findValidators(exchange: Exchange, known: KnownValidators, now: number): Validators {
  const isSilent = readProperty(known, 'entityTag') === undefined && readProperty(known, 'lastModified') === undefined
  return (isSilent ? remembered.get(exchange) : undefined) ?? resolveValidators(known, now)
}

/** @throws TypeError for a tag that is not an entity tag, which would never match anything, and for a date as text */
export function resolveValidators(known: KnownValidators, now: number): Validators {
  // Rows of a query are a list: without validators in it, If-Unmodified-Since would hold for every state.
  if (!hasProperties(known)) {
    throw new TypeError(
      `A state is { entityTag, lastModified }, or undefined where there is none, not ${describeValue(known)}.`,
    )
  }
  const entityTag = readProperty(known, 'entityTag')
  const lastModified = readProperty(known, 'lastModified')
  if (entityTag !== undefined && (typeof entityTag !== 'string' || !isEntityTag(entityTag))) {
    throw new TypeError(`An entity tag has double quotes around it, as in "\\"abc\\"", not ${quoteValue(entityTag)}.`)
  }
  // Of any realm: in Jest, the dates that `fs.stat` gives are not those of the program.
  const given = types.isDate(lastModified) ? lastModified.getTime() : lastModified
  // Text would be compared as NaN: If-Unmodified-Since would hold for every state.
  if (given !== undefined && !Number.isFinite(given)) {
    throw new TypeError(`lastModified is a valid Date, or milliseconds since the epoch, not ${describeValue(given)}.`)
  }
  return {
    entityTags: entityTag === undefined ? [] : [entityTag],
    lastModified: given,
    dateIsStrong: readProperty(known, 'dateIsStrong') ?? isSecondOver(given, now),
  }
}

/** ETag and Last-Modified as they are sent, names and values in turn. */
export function formatValidators({ entityTags, lastModified }: Validators, now: number): string[] {
  const fields = entityTags[0] === undefined ? [] : ['ETag', entityTags[0]]
  const date = dateToSend(lastModified, now)
  if (date !== undefined) fields.push('Last-Modified', formatHttpDate(date))
  return fields
}

/**
 * The value of a field that a function of the user has given.
 * @throws TypeError for one that cannot be sent. A 304 that fails while it is written leaves a response without content behind
 */
export function requireFieldValue(name: string, value: unknown): string {
  if (typeof value === 'string' && isFieldValue(value)) return value
  throw new TypeError(`${name} is text that a field can hold, not ${describeValue(value)}.`)
}

/** Cache-Control that a function of the user has given; `undefined` where it says nothing. @throws TypeError */
export function readCacheControl(known: { readonly cacheControl?: string | undefined }): string | undefined {
  const value = readProperty(known, 'cacheControl')
  return value === undefined ? undefined : requireFieldValue('cacheControl', value)
}
