import { describe, expect, it } from 'vitest'
import { isBusy, isOutOfSpace, toHttpError } from '../../src/stores/sqlite/handle.ts'

/** How the libraries tell SQLITE_BUSY, and the extended codes of it, which have the primary one in their last byte. */
const BUSY = [
  { errcode: 5 },
  { errcode: 517 },
  { rawCode: 5 },
  { rawCode: 261 },
  { rawCode: 6 },
  { code: 'SQLITE_BUSY' },
  { code: 'SQLITE_BUSY_SNAPSHOT' },
  { code: 'SQLITE_LOCKED_SHAREDCACHE' },
]

describe('an error of SQLite', () => {
  it.each(BUSY)('that says that the database is busy is 503: %j', (properties) => {
    const error = Object.assign(new Error('busy'), properties)
    expect(isBusy(error)).toBe(true)
    expect(toHttpError(error)).toMatchObject({ status: 503, cause: error })
  })

  const FULL = [{ errcode: 13 }, { rawCode: 13 }, { code: 'SQLITE_FULL' }]
  const OF_QUOTA = [{ errcode: 778 }, { rawCode: 4874 }, { code: 'SQLITE_IOERR_WRITE' }]
  it.each([...FULL, ...OF_QUOTA])(
    'that says that the disk is full, or that a quota may cause, is 507: %j',
    (properties) => {
      const error = Object.assign(new Error('full'), properties)
      expect([isBusy(error), isOutOfSpace(error)]).toEqual([false, true])
      expect(toHttpError(error)).toMatchObject({ status: 507, cause: error })
    },
  )

  it.each([{}, { errcode: 1 }, { rawCode: 2067 }, { code: 'SQLITE_CONSTRAINT_UNIQUE' }, { code: 'EBUSY' }])(
    'of any other kind stays what it is: %j',
    (properties) => {
      const error = Object.assign(new Error('other'), properties)
      expect([isBusy(error), isOutOfSpace(error)]).toEqual([false, false])
      expect(toHttpError(error)).toBe(error)
    },
  )
})
