import { ALL_SLOTS, KEY_COLUMNS } from '../sql/queries/index-tables.ts'
import { HIDDEN, LIVE, REMOVED } from '../sql/rows.ts'

/** The tables by which members are selected, and the triggers that keep them; see `sql/queries/index-tables.ts`. */
export function createIndexTables(prefix: string): string {
  const entries = `${prefix}entries`
  const places = `${prefix}places`
  const pending = `${prefix}pending`
  const states = `${prefix}states`
  const indexes = ALL_SLOTS.map(
    (slot) => `
    CREATE INDEX ${entries}_v${slot} ON ${entries} (place, v${slot}, sort_key) WHERE v${slot} IS NOT NULL;
    CREATE INDEX ${entries}_s${slot} ON ${entries} (place, scope, v${slot}, sort_key)
      WHERE scope IS NOT NULL AND v${slot} IS NOT NULL;`,
  )
  const placesOf = (row: 'NEW' | 'OLD', id: string, condition = '') =>
    `SELECT ${id} FROM ${places} WHERE collection = ${row}.collection${condition}`
  const of = (row: 'NEW' | 'OLD', id: string, condition = '') =>
    `sort_key = ${row}.sort_key AND place IN (${placesOf(row, id, condition)})`
  const byThis = ' AND index_version IS NEW.indexed_by'
  const byOthers = ' AND index_version IS NOT NEW.indexed_by'
  // The table of entries has 32 indexes, and a statement opens them all, also where no entry matches. That takes longer than
  // the write itself, so a trigger looks for places or pending members first.
  const isIndexed = (row: 'NEW' | 'OLD', condition = '') =>
    `${row}.collection IS NOT NULL AND EXISTS (${placesOf(row, '1', condition)})`
  // Not "OR IGNORE": the clause for conflicts of the statement that fires a trigger holds for the trigger as well.
  const becomesPending = `INSERT INTO ${pending} SELECT id, NEW.sort_key FROM ${places} AS p
        WHERE collection = NEW.collection${byOthers}
        AND NOT EXISTS (SELECT 1 FROM ${pending} WHERE place = p.id AND sort_key = NEW.sort_key);`
  const forget = (row: 'NEW' | 'OLD') => `
      DELETE FROM ${entries} WHERE ${of(row, 'id')};
      DELETE FROM ${entries} WHERE ${of(row, '-id')};
      DELETE FROM ${pending} WHERE ${of(row, 'id')};`
  return `
    CREATE TABLE ${places} (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      collection TEXT,
      index_version TEXT NOT NULL,
      phase INTEGER NOT NULL,
      walked TEXT NOT NULL,
      indexed INTEGER NOT NULL,
      used INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX ${places}_named ON ${places} (collection, index_version) WHERE collection IS NOT NULL;
    CREATE INDEX ${places}_used ON ${places} (used) WHERE collection IS NOT NULL;
    CREATE INDEX ${places}_dropped ON ${places} (id) WHERE collection IS NULL;
    CREATE TABLE ${entries} (
      place INTEGER NOT NULL,
      sort_key TEXT NOT NULL,
      ${KEY_COLUMNS.map((column) => `${column} BLOB`).join(', ')},
      PRIMARY KEY (place, sort_key)
    ) WITHOUT ROWID;${indexes.join('')}
    CREATE TABLE ${pending} (place INTEGER NOT NULL, sort_key TEXT NOT NULL, PRIMARY KEY (place, sort_key)) WITHOUT ROWID;
    CREATE TRIGGER ${states}_created AFTER INSERT ON ${states}
      WHEN NEW.state <> ${REMOVED} AND ${isIndexed('NEW', byOthers)}
    BEGIN
      ${becomesPending}
    END;
    CREATE TRIGGER ${states}_outdated AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${LIVE} AND ${isIndexed('NEW', byOthers)}
    BEGIN
      DELETE FROM ${entries} WHERE ${of('NEW', 'id', byOthers)};
      ${becomesPending}
    END;
    CREATE TRIGGER ${states}_indexed AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${LIVE} AND EXISTS (SELECT 1 FROM ${pending} WHERE ${of('NEW', 'id', byThis)})
    BEGIN
      DELETE FROM ${pending} WHERE ${of('NEW', 'id', byThis)};
    END;
    CREATE TRIGGER ${states}_shown AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${LIVE} AND OLD.state = ${HIDDEN} AND ${isIndexed('NEW')}
    BEGIN
      DELETE FROM ${entries} WHERE ${of('NEW', '-id')};
    END;
    CREATE TRIGGER ${states}_hidden AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${HIDDEN} AND ${isIndexed('NEW')}
    BEGIN
      UPDATE ${entries} SET place = -place WHERE ${of('NEW', 'id')};
    END;
    CREATE TRIGGER ${states}_removed AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${REMOVED} AND ${isIndexed('NEW')}
    BEGIN${forget('NEW')}
    END;
    CREATE TRIGGER ${states}_unlisted AFTER UPDATE OF collection ON ${states}
      WHEN NEW.collection IS NULL AND ${isIndexed('OLD')}
    BEGIN${forget('OLD')}
    END;
    CREATE TRIGGER ${states}_erased AFTER DELETE ON ${states}
      WHEN OLD.state <> ${REMOVED} AND ${isIndexed('OLD')}
    BEGIN${forget('OLD')}
    END;`
}
