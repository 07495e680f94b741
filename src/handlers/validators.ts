import { isEntityTag } from '../protocol/entity-tag.ts'
import { formatHttpDate } from '../protocol/http-date.ts'
import { isSecondOver, type Validators } from '../protocol/preconditions.ts'

/** The validators of a current representation, as a route knows them. */
export interface KnownValidators {
  /** A whole entity tag: `"abc"`, or `W/"abc"` where equal tags do not mean equal bytes. */
  readonly entityTag?: string | undefined
  /** When the representation changed last: a Date, or milliseconds since the epoch. */
  readonly lastModified?: Date | number | undefined
  /** Whether it changed once only in that second. Default: whether that second is over. */
  readonly dateIsStrong?: boolean | undefined
}

/** @throws TypeError for a tag that is no entity tag, which would never match anything */
export function resolveValidators(known: KnownValidators, now: number): Validators {
  const { entityTag, lastModified } = known
  if (entityTag !== undefined && !isEntityTag(entityTag)) {
    throw new TypeError(
      `An entity tag has double quotes around it, as in "\\"abc\\"", not ${JSON.stringify(entityTag)}.`,
    )
  }
  const given = lastModified instanceof Date ? lastModified.getTime() : lastModified
  if (Number.isNaN(given)) throw new TypeError('lastModified is not a valid date.')
  const date = given === undefined ? undefined : Math.min(given, now)
  return {
    entityTags: entityTag === undefined ? [] : [entityTag],
    lastModified: date,
    dateIsStrong: known.dateIsStrong ?? isSecondOver(date, now),
  }
}

/** ETag and Last-Modified, names and values in turn. */
export function formatValidators({ entityTags, lastModified }: Validators): string[] {
  const fields = entityTags[0] === undefined ? [] : ['ETag', entityTags[0]]
  if (lastModified !== undefined) fields.push('Last-Modified', formatHttpDate(lastModified))
  return fields
}
