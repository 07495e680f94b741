import { HttpError, isHttpError } from '../../core/errors.ts'
import { hasProperties } from '../../core/option-values.ts'

/** Rolled back for the sake of another transaction: doing the same again may succeed. */
const REPEATABLE: readonly string[] = ['40001', '40P01']

/** The server cannot serve now: it stops, starts, is overloaded, read-only after a failover, or took too long. */
const UNAVAILABLE = /^(?:08...|57P..|57014|55P03|53[234]00|25006|25P0[34]|40...)$/

/** The server ends the connection with these: a lost one, a shutdown, and the limits of a transaction. */
const ENDED = /^(?:08...|57P..|25P0[34])$/

const DISK_FULL = '53100'
/** A path that is too long for an index. */
const LIMIT_EXCEEDED = '54000'

/** The code by which the server names an error; `undefined` for errors that did not come from it. */
function sqlStateOf(error: unknown): string | undefined {
  if (!hasProperties(error)) return undefined
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') ? code : undefined
}

export function isRepeatable(error: unknown): boolean {
  return REPEATABLE.includes(sqlStateOf(error) ?? '')
}

/** Whether the connection can serve further statements after an error. */
export function isConnectionIntact(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== undefined && !ENDED.test(state)
}

/** Whether there was no connection, or it broke: nothing is known about the statement. */
export function isConnectionLost(error: unknown): boolean {
  if (isHttpError(error) || error instanceof TypeError || error instanceof RangeError) return false
  return !isConnectionIntact(error)
}

export function createUnavailableError(cause: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause })
}

/** What the answer to a request is when the database has refused. */
export function toHttpError(error: unknown): unknown {
  const state = sqlStateOf(error)
  if (state === undefined) return isConnectionLost(error) ? createUnavailableError(error) : error
  if (UNAVAILABLE.test(state)) return createUnavailableError(error)
  if (state === DISK_FULL) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  if (state === LIMIT_EXCEEDED) return new HttpError(414, 'ERR_TARGET_TOO_LONG', { cause: error })
  return error
}

/** Whether a statement has undone itself because a row was not written; see `createBeside`. */
export function isDivisionByZero(error: unknown): boolean {
  return sqlStateOf(error) === '22012'
}

/** Whether a table does not exist. */
export function isRelationMissing(error: unknown): boolean {
  return sqlStateOf(error) === '42P01'
}

/** Whether two processes have created the same table or index at the same moment. */
export function isSchemaRace(error: unknown): boolean {
  return ['23505', '42P07', '42710', 'XX000'].includes(sqlStateOf(error) ?? '')
}
