import type { ListOptions, Page } from '../lists.ts'
import type { KnownStates } from '../recent-cache.ts'
import { decodeText, encodeText, formatSortKey, type StateRow, toPage, toResource } from '../sql/rows.ts'
import type { StoredResource } from '../types.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteStatements } from './statements.ts'

/** The pages of the collections. */
export interface SqliteListings {
  list(collection: string, options: ListOptions): Page
}

export function createSqliteListings(
  statements: SqliteStatements,
  contents: SqliteContents,
  known: KnownStates,
): SqliteListings {
  function list(collection: string, { after, limit, hidden = false }: ListOptions): Page {
    const place = [encodeText(collection), after === undefined ? '' : encodeText(formatSortKey(after))] as const
    const range = [...place, limit + 1] as const
    if (hidden) return toPage(statements.listAll.all(...range, ...range, limit + 1) as StateRow[], limit, toMember)
    const key = `${limit} ${place[0].length} ${place[0]}${place[1]}`
    const knownPage = known.findPage(key)
    if (knownPage !== undefined) {
      const current = statements.listVersions.get(...range) as { versions: string | null }
      if (current.versions === knownPage.versions) return knownPage.page
    }
    const rows = statements.listLive.all(...range) as StateRow[]
    const page = toPage(rows, limit, toMember)
    known.offerPage(key, rows, page)
    return page
  }

  function toMember(row: StateRow): StoredResource {
    return known.resourceOf(decodeText(row.path), row.version) ?? toResource(row, contents.open)
  }

  return { list }
}
