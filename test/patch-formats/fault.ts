import { expect } from 'vitest'
import { type HttpError, isHttpError } from '../../src/core/errors.ts'

/** The HttpError that something throws. */
export function faultOf(act: () => unknown): HttpError {
  try {
    act()
  } catch (error) {
    if (isHttpError(error)) return error
    throw error
  }
  return expect.fail('nothing was thrown')
}
