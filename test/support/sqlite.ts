import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { SqliteHandle } from '../../src/stores/sqlite.ts'
import { scratchFolder } from './folders.ts'

export type ClosableHandle = SqliteHandle & { close(): void }

/** The libraries that can be loaded here, each with the function that opens a file. */
export const sqliteLibraries: Readonly<Record<string, (file: string) => ClosableHandle>> = loadLibraries()

type Opener = new (file: string) => ClosableHandle

function loadLibraries(): Record<string, (file: string) => ClosableHandle> {
  const require = createRequire(import.meta.url)
  const Libsql = require('libsql') as Opener
  const libraries: Record<string, (file: string) => ClosableHandle> = { libsql: (file) => new Libsql(file) }
  const builtIn = process.getBuiltinModule?.('node:sqlite') as { DatabaseSync: Opener } | undefined
  if (builtIn !== undefined) libraries['node:sqlite'] = (file) => new builtIn.DatabaseSync(file)
  try {
    // Not among our dependencies, because it has to be compiled; tested where NODE_PATH leads to it.
    const BetterSqlite = require('better-sqlite3') as Opener
    libraries['better-sqlite3'] = (file) => new BetterSqlite(file)
  } catch {}
  return libraries
}

export interface DatabaseFile {
  readonly path: string
  /** Opens a further connection. */
  open(): ClosableHandle
  /** Closes every connection and removes the file. */
  remove(): Promise<void>
}

/** A database file of its own, for one test. */
export async function createDatabaseFile(open = sqliteLibraries['libsql']!): Promise<DatabaseFile> {
  const folder = await mkdtemp(join(scratchFolder, 'sqlite-store-'))
  const path = join(folder, 'store.db')
  const handles: ClosableHandle[] = []
  return {
    path,
    open() {
      const handle = open(path)
      handles.push(handle)
      return handle
    },
    async remove() {
      for (const handle of handles) {
        try {
          handle.close()
        } catch {
          // Closed by the test already.
        }
      }
      await rm(folder, { recursive: true, force: true })
    },
  }
}
