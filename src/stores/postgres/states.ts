import { createResource, type Description, parseIntegerName } from '../rules.ts'
import type { RemoveStep, SqlShared, Taken } from '../sql/dialect.ts'
import {
  encodeBody,
  encodeFields,
  escapeText,
  formatSortKey,
  HIDDEN,
  LIVE,
  placeOf,
  rangeBelow,
  toState,
} from '../sql/rows.ts'
import type { Abortable, Expectation, ReadOptions, StoredResource, StoredState } from '../types.ts'
import { sqlStateOf } from './checkout.ts'
import type { PostgresConnection, PostgresValue, RunStatement } from './connection.ts'
import type { PostgresContents } from './contents.ts'
import type { NameSource } from './names.ts'
import {
  type DatedRow,
  encodeKey,
  listIndexed,
  type PostgresStatements,
  toCountable,
  type WrittenRow,
} from './statements.ts'
import { REPLACE } from './write-statements.ts'

/** `vacant`: no row at all may be there, not that of a removed resource either. */
export type PutExpectation = Expectation | 'vacant'

export interface PutResult {
  readonly outcome: 'created' | 'replaced'
  readonly resource: StoredResource
  /** Where the counter of the collection stands once this write is committed. */
  readonly counter: { readonly collection: string; readonly next: number } | undefined
}

/** A path that is written for the first time. */
export interface NewRow {
  readonly path: string
  readonly version: string
  readonly content: Description
  readonly taken: Taken
}

interface DropOptions extends Pick<RemoveStep, 'mode' | 'expect' | 'retention'> {
  /** Whether a hidden resource is removed as well. */
  readonly reach: 'live' | 'live-and-hidden'
}

type CreatedRow = Pick<WrittenRow, 'changed' | 'strong'>

const DIVISION_BY_ZERO = '22012'
/** Steps in which what is below a path is removed: more than there are collections within each other. */
const MOST_LEVELS = 16

export type PostgresStates = ReturnType<typeof createPostgresStates>

/** The rows of the paths. Each change is one statement, atomic by itself. */
export function createPostgresStates(
  connection: PostgresConnection,
  statements: PostgresStatements,
  contents: PostgresContents,
  names: NameSource,
  { settings, nextVersion }: Pick<SqlShared, 'settings' | 'nextVersion'>,
) {
  const grace = toCountable(settings.grace)

  return {
    async read(path: string, options: ReadOptions = {}): Promise<StoredState> {
      const statement = options.metadataOnly ? statements.readFacts : statements.readState
      const [row] = await connection.read<DatedRow>(statement, [encodeKey(path)], options)
      return toState(row, options, row?.now ?? 0, contents.open)
    },

    async readRow(path: string, call: Abortable): Promise<DatedRow | undefined> {
      const [row] = await connection.read<DatedRow>(statements.readState, [encodeKey(path)], call)
      return row
    },

    /** What a reader finds who sees nothing hidden. */
    toFoundState: (row: DatedRow | undefined): StoredState => toState(row, {}, row?.now ?? 0, contents.open),

    /** Writes a path; `undefined` when its state was not the expected one. */
    async put(
      run: RunStatement,
      path: string,
      content: Description,
      taken: Taken,
      expect: PutExpectation,
      version: string = nextVersion(),
    ): Promise<PutResult | undefined> {
      const place = placeOf(path)
      const indexed = place === undefined ? [] : listIndexed(content)
      const values: PostgresValue[] = [encodeKey(path), version, taken.size, ...encodeFields(content), taken.id ?? null]
      values.push(taken.id === undefined ? encodeBody(taken.body) : null, grace, taken.sha256 ?? null)
      let name: 'putState' | 'putNamed' | 'replaceState' = 'replaceState'
      if (expect === 'present' || typeof expect === 'object') {
        values.push(expect === 'present' ? null : expect.version)
      } else {
        values.push(place === undefined ? null : encodeKey(place.collection))
        values.push(place === undefined ? null : encodeKey(formatSortKey(place.name)))
        values.push(REPLACE[expect])
        const id = place === undefined ? undefined : parseIntegerName(place.name)
        // An assigned name has come from the counter.
        const raised = id === undefined || expect === 'vacant' ? undefined : names.raiseFor(place!.collection, id)
        if (raised !== undefined) values.push(raised)
        name = raised === undefined ? 'putState' : 'putNamed'
      }
      const statement = statements[indexed.length > 0 ? (`${name}Indexed` as const) : name]
      const [row] = await run<WrittenRow>(statement, [...values, ...indexed])
      if (row === undefined) return undefined
      if (taken.id !== undefined) await contents.link(run, taken.id)
      return {
        outcome: row.was_state === LIVE ? 'replaced' : 'created',
        resource: createResource(path, version, content, taken, row),
        counter: row.next === null ? undefined : { collection: place!.collection, next: row.next },
      }
    },

    /** Creates a path of small content; `undefined` where a row is there, also that of a removed resource. */
    async create(run: RunStatement, own: NewRow): Promise<PutResult | undefined> {
      const indexed = listIndexed(own.content)
      const statement = indexed.length > 0 ? statements.createStateIndexed : statements.createState
      const [row] = await run<CreatedRow>(statement, [...listValues(own), ...indexed])
      return row && toCreation(own, row)
    },

    /**
     * Creates a path beside one that must be absent, both of small content, in one round trip; `undefined` when a
     * transaction has to find out why that is not possible.
     */
    async createBeside(run: RunStatement, other: Omit<NewRow, 'version'>, own: NewRow): Promise<PutResult | undefined> {
      const indexed = listIndexed(own.content)
      const values = [...listValues({ ...other, version: nextVersion() }), ...listValues(own), ...indexed]
      const statement = indexed.length > 0 ? statements.createBesideIndexed : statements.createBeside
      try {
        const [row] = await run<CreatedRow>(statement, values)
        return row && toCreation(own, row)
      } catch (error) {
        // The statement has undone itself: the new path is there.
        if (sqlStateOf(error) === DIVISION_BY_ZERO) return undefined
        throw error
      }
    },

    /** Within a transaction: whether a path is present; it then stays so until the transaction ends. */
    async hold(run: RunStatement, path: string): Promise<boolean> {
      return (await run(statements.holdState, [encodeKey(path)])).length > 0
    },

    /** Removes everything below a path, without a trace. In a transaction that has removed the path before. */
    async dropBelow(run: RunStatement, path: string): Promise<void> {
      const range = rangeBelow(path).map((key) => Buffer.from(key))
      // What each step waited for may have added rows further below, which the step did not see.
      for (let level = 0, isDone = false; !isDone && level < MOST_LEVELS; level++) {
        isDone = (await run(statements.removeBelow, [...range, nextVersion(), grace])).length === 0
      }
    },

    /** Removes a path and returns the row as it was; `undefined` when its state was not the expected one. */
    async drop(run: RunStatement, path: string, options: DropOptions): Promise<DatedRow | undefined> {
      const { mode, retention, expect, reach } = options
      const values: PostgresValue[] = [
        encodeKey(path),
        typeof expect === 'object' ? expect.version : null,
        nextVersion(),
        reach === 'live' ? LIVE : HIDDEN,
      ]
      if (mode === 'hide') return (await run<DatedRow>(statements.hideState, values))[0]
      values.push(mode === 'erase' ? 0 : toCountable(retention), grace)
      return (await run<DatedRow>(statements.removeState, values))[0]
    },
  }
}

function toCreation({ path, version, content, taken }: NewRow, row: CreatedRow): PutResult {
  return { outcome: 'created', resource: createResource(path, version, content, taken, row), counter: undefined }
}

/** The values of a new row, in the order of `createState`. */
function listValues({ path, version, content, taken }: NewRow): readonly PostgresValue[] {
  const key = escapeText(path)
  // The parts of an encoded path are the encoded parts.
  const place = placeOf(key)
  return [
    Buffer.from(key),
    version,
    taken.size,
    ...encodeFields(content),
    taken.id === undefined ? encodeBody(taken.body) : null,
    place === undefined ? null : Buffer.from(place.collection),
    place === undefined ? null : Buffer.from(formatSortKey(place.name)),
  ]
}
