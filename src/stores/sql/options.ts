import type { ContentStore } from '../../contents/types.ts'
import { checkValues, SIZE, type ValueRule } from '../../core/option-values.ts'
import { changeOptions, readOptions } from '../../core/options.ts'
import { CONTENT_STORE } from './beside.ts'
import { checkTablePrefix } from './names.ts'

/** The options that all stores on tables have. */
export interface SqlStoreOptions {
  /** What the names of the tables begin with: lower-case letters, digits, underscores. Default `resource_`. */
  readonly tablePrefix?: string
  /** Bytes up to which content is kept in one piece and read at once. Default 65 536. */
  readonly inlineLimit?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** Milliseconds for which replaced large content stays readable, and unfinished uploads stay. Default 10 minutes. */
  readonly grace?: number
  /** Milliseconds between two sweeps, from the time on when the tables exist; 0 for none. Default 60 000. */
  readonly sweepInterval?: number
  /**
   * Bytes of memory for large content that is asked for repeatedly; `sqliteStore` takes a quarter of it more for states,
   * and another for pages. 0 for none. Default 32 MiB.
   */
  readonly cacheSize?: number
  /**
   * Where content above `inlineLimit` is kept instead of in the database: `fileContents`, `s3Contents` or another
   * `ContentStore`. Chunks that are in the database stay readable. Default: in the database.
   */
  readonly contents?: ContentStore
}

/** The options with their defaults. */
export type SqlSettings<Options extends SqlStoreOptions> = Readonly<
  Required<Omit<Options, 'contents'>> & Pick<SqlStoreOptions, 'contents'>
>

/** The options that only one of the stores has. */
export interface OwnOptions<Options extends SqlStoreOptions> {
  readonly names: readonly OwnName<Options>[]
  readonly rules: Partial<Readonly<Record<OwnName<Options>, ValueRule>>>
}

type OwnName<Options extends SqlStoreOptions> = Exclude<keyof Options, keyof SqlStoreOptions> & string

const NAMES = ['tablePrefix', 'inlineLimit', 'retention', 'grace', 'sweepInterval', 'cacheSize', 'contents'] as const
const RULES = {
  inlineLimit: SIZE,
  retention: SIZE,
  grace: SIZE,
  sweepInterval: SIZE,
  cacheSize: SIZE,
  contents: CONTENT_STORE,
}

const MINUTE = 60 * 1000
const DEFAULTS = {
  tablePrefix: 'resource_',
  inlineLimit: 65_536,
  retention: 30 * 24 * 60 * MINUTE,
  grace: 10 * MINUTE,
  sweepInterval: MINUTE,
  cacheSize: 32 * 1024 * 1024,
}

/**
 * Reads and checks the options of a store on tables.
 * @param owner the public name of the store
 * @param defaults those of its own options
 * @throws TypeError for an unknown option, a wrong value or an unfit prefix
 */
export function readSqlOptions<Options extends SqlStoreOptions>(
  owner: string,
  options: Options | undefined,
  { names, rules }: OwnOptions<Options>,
  defaults: Partial<Pick<Options, OwnName<Options>>>,
): SqlSettings<Options> {
  const read = readOptions<SqlStoreOptions>(owner, options, [...names, ...NAMES] as (keyof SqlStoreOptions)[])
  checkValues(owner, read, { ...RULES, ...rules } as Readonly<Record<string, ValueRule>>)
  checkTablePrefix(owner, read.tablePrefix ?? DEFAULTS.tablePrefix)
  return changeOptions<object>({ ...DEFAULTS, ...defaults }, read) as SqlSettings<Options>
}
