import { HttpError } from '../../core/errors.ts'
import type { Taken } from '../sql/intake.ts'
import { encodeText, formatSortKey } from '../sql/names.ts'
import {
  createWrittenResource,
  decideChange,
  encodeBody,
  encodeFields,
  placeOf,
  REMOVED,
  type StateRow,
} from '../sql/rows.ts'
import {
  type ContentFields,
  parseIntegerName,
  type RelatedWrite,
  type RemoveOptions,
  type StoredResource,
} from '../types.ts'
import { createVersions } from '../versions.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteStatements } from './statements.ts'

/** The rows of the paths. Whatever changes them runs within a transaction. */
export interface SqliteStates {
  readFacts(path: string): StateRow | undefined
  readState(path: string): StateRow | undefined
  /** Writes a path whose row, if any, has been read in the same transaction. */
  put(path: string, row: StateRow | undefined, content: ContentFields, taken: Taken): StoredResource
  putRelated(writes: readonly RelatedWrite[], taken: readonly Taken[]): void
  /** @param keep milliseconds for which a tombstone stays */
  drop(row: StateRow, mode: RemoveOptions['mode'], keep: number): void
  dropRelated(paths: readonly string[], mode: RemoveOptions['mode'], keep: number): void
  /** Assigns a name in a collection. */
  takeName(collection: string): string
}

export function createSqliteStates(
  statements: SqliteStatements,
  contents: SqliteContents,
  now: () => number,
): SqliteStates {
  const nextVersion = createVersions()
  const readFacts = (path: string) => statements.readFacts.get(encodeText(path)) as StateRow | undefined

  function put(path: string, row: StateRow | undefined, content: ContentFields, taken: Taken): StoredResource {
    const change = decideChange(row, now())
    const version = nextVersion()
    const place = placeOf(path)
    if (taken.id !== undefined) contents.link(taken.id)
    statements.putState.run(
      encodeText(path),
      place === undefined ? null : encodeText(place.collection),
      place === undefined ? null : encodeText(formatSortKey(place.name)),
      version,
      change.changed,
      change.strong ? 1 : 0,
      taken.size,
      ...encodeFields(content),
      taken.id ?? null,
      taken.id === undefined ? encodeBody(taken.body) : null,
    )
    release(row)
    // A path that has a row has raised the counter before.
    if (row === undefined && place !== undefined) raiseCounter(place.collection, place.name)
    return createWrittenResource(path, version, content, taken, change)
  }

  function drop(row: StateRow, mode: RemoveOptions['mode'], keep: number): void {
    const time = now()
    const { changed, strong } = decideChange(row, time)
    if (mode === 'hide') {
      statements.hideState.run(nextVersion(), changed, strong ? 1 : 0, row.path)
      return
    }
    const expires = mode === 'erase' ? time : Math.min(time + keep, Number.MAX_SAFE_INTEGER)
    statements.removeState.run(nextVersion(), changed, strong ? 1 : 0, expires, row.path)
    release(row)
  }

  function release(row: StateRow | undefined): void {
    if (row !== undefined && row.content_id !== null) contents.release(row.content_id)
  }

  function raiseCounter(collection: string, name: string): void {
    const id = parseIntegerName(name)
    if (id !== undefined && id > 0) statements.raiseCounter.run(encodeText(collection), id + 1)
  }

  return {
    readFacts,
    readState: (path) => statements.readState.get(encodeText(path)) as StateRow | undefined,
    put,

    putRelated(writes, taken) {
      for (const [index, { path, content }] of writes.entries()) put(path, readFacts(path), content, taken[index]!)
    },

    drop,

    dropRelated(paths, mode, keep) {
      for (const path of paths) {
        const row = readFacts(path)
        if (row !== undefined && row.state !== REMOVED) drop(row, mode, keep)
      }
    },

    takeName(collection) {
      const row = statements.nextName.get(encodeText(collection)) as { id: number } | undefined
      if (row !== undefined) return String(row.id)
      throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
    },
  }
}
