import { HttpError } from '../../core/errors.ts'
import { hasProperties } from '../../core/option-values.ts'

const BUSY = 5
const LOCKED = 6
const FULL = 13
const CODES: Readonly<Record<string, number>> = { SQLITE_BUSY: BUSY, SQLITE_LOCKED: LOCKED, SQLITE_FULL: FULL }
/** `SQLITE_IOERR_WRITE` and `SQLITE_IOERR_SHMSIZE`, as numbers and as names. */
const IO_ERRORS: ReadonlySet<unknown> = new Set([778, 4874, 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE'])

/** Whether the disk is full, or a write failed with one of the errors that a quota causes. */
export function isOutOfSpace(error: unknown): boolean {
  if (codeOf(error) === FULL) return true
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  return IO_ERRORS.has(code) || IO_ERRORS.has(rawCode) || IO_ERRORS.has(errcode)
}

/** The primary result code of an error, which each library tells in its own way. */
function codeOf(error: unknown): number | undefined {
  if (!hasProperties(error)) return undefined
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof rawCode === 'number') return rawCode & 0xff
  if (typeof code !== 'string') return undefined
  return CODES[code.split('_', 2).join('_')]
}

export function isBusy(error: unknown): boolean {
  const code = codeOf(error)
  return code === BUSY || code === LOCKED
}

/** Whether a rollback found no transaction: SQLite has ended it by itself. Its code is that of many errors. */
export function isNoTransaction(error: unknown): boolean {
  return hasProperties(error) && String((error as { message?: unknown }).message).includes('no transaction is active')
}

export function createUnavailableError(cause?: unknown): HttpError {
  const headers = { 'Retry-After': '1' }
  return new HttpError(503, 'ERR_UNAVAILABLE', cause === undefined ? { headers } : { headers, cause })
}

/** 503 while another process holds the lock, 507 when the disk is full; any other error as it is. */
export function toHttpError(error: unknown): unknown {
  if (isBusy(error)) return createUnavailableError(error)
  if (codeOf(error) === FULL) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  return error
}
