import type { Conditions } from '../protocol/preconditions.ts'
import type { Exchange } from './exchange.ts'
import { countField } from './fields.ts'

/** Whether a request carries a condition at all. */
export function hasConditions(exchange: Exchange): boolean {
  return (
    exchange.field('if-none-match') !== undefined ||
    exchange.field('if-match') !== undefined ||
    exchange.field('if-modified-since') !== undefined ||
    exchange.field('if-unmodified-since') !== undefined
  )
}

/** The conditions of a request. A date that is given more than once is not a date, and is ignored (RFC 9110 §13.1.3). */
export function conditionsOf(exchange: Exchange): Conditions {
  const { req } = exchange
  const modifiedSince = exchange.field('if-modified-since')
  const unmodifiedSince = exchange.field('if-unmodified-since')
  const isSingle = (name: string): boolean => countField(req, name) === 1
  return {
    ifMatch: exchange.field('if-match'),
    ifNoneMatch: exchange.field('if-none-match'),
    ifModifiedSince: modifiedSince !== undefined && isSingle('if-modified-since') ? modifiedSince : undefined,
    ifUnmodifiedSince: unmodifiedSince !== undefined && isSingle('if-unmodified-since') ? unmodifiedSince : undefined,
  }
}
