import { SIZE, withDefault } from '../core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import type { BodyLimits } from './types.ts'

const KIB = 1024
const MIB = 1024 * KIB

const LIMITS = {
  bodySize: withDefault(SIZE, 8 * MIB),
  depth: withDefault(SIZE, 100),
  jsonMembers: withDefault(SIZE, 100_000),
  formFields: withDefault(SIZE, 1000),
  parts: withDefault(SIZE, 110),
  fields: withDefault(SIZE, 100),
  files: withDefault(SIZE, 10),
  fieldSize: withDefault(SIZE, 64 * KIB),
  fieldsSize: withDefault(SIZE, MIB),
  fileSize: withDefault(SIZE, Number.POSITIVE_INFINITY),
  partHeaders: withDefault(SIZE, 32),
  nameLength: withDefault(SIZE, 200),
} satisfies OptionTable<BodyLimits>

/**
 * Limits with every default filled in.
 * @param owner the public name that takes them, for the message
 * @throws TypeError for a limit that does not exist or is not a number of at least 0
 */
export function readLimits(owner: string, given: Partial<BodyLimits> | undefined): BodyLimits {
  return Object.freeze(
    completeOptions(resolveOptions<Partial<BodyLimits>, typeof LIMITS>(`${owner} limits`, given, LIMITS), LIMITS),
  )
}

export const DEFAULT_LIMITS: BodyLimits = readLimits('', undefined)
