// Compiled, never run: `tsc -p test` fails when a table of options differs from its interface.
import { BOOLEAN, required, SIZE, TEXT, withDefault } from '../../src/core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../../src/core/options.ts'
import type { Equal, Expect } from './equal.ts'

interface Options {
  readonly name: string
  readonly size?: number
  readonly isOpen?: boolean
}

const TABLE = { name: required(TEXT), size: withDefault(SIZE, 7), isOpen: BOOLEAN } satisfies OptionTable<Options>
const resolved = resolveOptions<Options, typeof TABLE>('piece', { name: 'a' }, TABLE)
const complete = completeOptions<Options, typeof TABLE>(resolved, TABLE)

// @ts-expect-error isOpen has no rule
export const FEWER: OptionTable<Options> = { name: TEXT, size: SIZE }
// @ts-expect-error isShut does not exist
export const MORE: OptionTable<Options> = { name: TEXT, size: SIZE, isOpen: BOOLEAN, isShut: BOOLEAN }
// @ts-expect-error the default of a size is a number
export const WRONG: OptionTable<Options> = { name: TEXT, size: withDefault(SIZE, '7'), isOpen: BOOLEAN }

export type Checks = [
  Expect<Equal<typeof resolved.size, number>>,
  Expect<Equal<typeof resolved.isOpen, boolean | undefined>>,
  Expect<Equal<typeof complete.size, number>>,
  Expect<Equal<typeof complete.isOpen, boolean | undefined>>,
]
