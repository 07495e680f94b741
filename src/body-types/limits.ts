import { readOptions } from '../core/options.ts'
import { type BodyLimits, DEFAULT_LIMITS } from './types.ts'

/**
 * Limits with every default filled in.
 * @param owner the public name that takes them, for the message
 * @throws TypeError for a limit that does not exist or is not a number of at least 0
 */
export function readLimits(owner: string, given: Partial<BodyLimits> | undefined): BodyLimits {
  const names = Object.keys(DEFAULT_LIMITS) as (keyof BodyLimits)[]
  const limits = { ...DEFAULT_LIMITS, ...readOptions(`${owner} limits`, given, names) }
  for (const name of names) {
    if (typeof limits[name] !== 'number' || !(limits[name] >= 0))
      throw new TypeError(`${owner} takes a limits.${name} of at least 0.`)
  }
  return Object.freeze(limits)
}
