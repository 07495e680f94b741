import { ALL_SLOTS, KEY_COLUMNS } from '../sql/queries/index-tables.ts'
import { HIDDEN, REMOVED } from '../sql/rows.ts'

/**
 * The tables by which members are selected, and the triggers that keep them; see `sql/queries/index-tables.ts`. A trigger sees
 * what has been committed while its statement waited for the row; the statement itself does not. It needs no rights of the
 * role that writes, so roles that were given rights on the tables of release 0.1 go on writing.
 */
export function createIndexTables(prefix: string): readonly string[] {
  const entries = `${prefix}entries`
  const places = `${prefix}places`
  const pending = `${prefix}pending`
  const states = `${prefix}states`
  const indexes = ALL_SLOTS.flatMap((slot) => [
    `CREATE INDEX IF NOT EXISTS ${entries}_v${slot} ON ${entries} (place, v${slot}, sort_key) WHERE v${slot} IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS ${entries}_s${slot} ON ${entries} (place, scope, v${slot}, sort_key) ` +
      `WHERE scope IS NOT NULL AND v${slot} IS NOT NULL`,
  ])
  const forget = (row: 'NEW' | 'OLD') => `
        DELETE FROM ${entries} WHERE place IN (p.id, -p.id) AND sort_key = ${row}.sort_key;
        DELETE FROM ${pending} WHERE place = p.id AND sort_key = ${row}.sort_key;`
  const trigger = (name: string, event: string, condition: string, body: string) => [
    `CREATE OR REPLACE FUNCTION ${states}_${name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT AS $body$
    DECLARE
      p record;
    BEGIN${body}
      RETURN NULL;
    END
    $body$`,
    `DROP TRIGGER IF EXISTS ${states}_${name} ON ${states}`,
    `CREATE TRIGGER ${states}_${name} AFTER ${event} ON ${states} FOR EACH ROW WHEN (${condition}) ` +
      `EXECUTE FUNCTION ${states}_${name}()`,
  ]
  return [
    `CREATE TABLE IF NOT EXISTS ${places} (
      id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      collection bytea,
      index_version text NOT NULL,
      phase smallint NOT NULL,
      walked bytea NOT NULL,
      indexed bigint NOT NULL,
      used bigint NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS ${places}_named ON ${places} (collection, index_version) WHERE collection IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS ${places}_used ON ${places} (used) WHERE collection IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS ${places}_dropped ON ${places} (id) WHERE collection IS NULL`,
    `CREATE TABLE IF NOT EXISTS ${entries} (
      place integer NOT NULL,
      sort_key bytea NOT NULL,
      ${KEY_COLUMNS.map((column) => `${column} bytea`).join(', ')},
      PRIMARY KEY (place, sort_key)
    )`,
    ...indexes,
    `CREATE TABLE IF NOT EXISTS ${pending} (place integer NOT NULL, sort_key bytea NOT NULL, PRIMARY KEY (place, sort_key))`,
    ...trigger(
      'written',
      'INSERT OR UPDATE OF version',
      'NEW.collection IS NOT NULL',
      `
      FOR p IN SELECT id, index_version FROM ${places} WHERE collection = NEW.collection LOOP
        IF NEW.state = ${REMOVED} THEN${forget('NEW')}
        ELSIF NEW.state = ${HIDDEN} THEN
          UPDATE ${entries} SET place = -p.id WHERE place = p.id AND sort_key = NEW.sort_key;
        ELSE
          DELETE FROM ${entries} WHERE place = -p.id AND sort_key = NEW.sort_key;
          IF p.index_version IS DISTINCT FROM NEW.indexed_by THEN
            DELETE FROM ${entries} WHERE place = p.id AND sort_key = NEW.sort_key;
            INSERT INTO ${pending} VALUES (p.id, NEW.sort_key) ON CONFLICT (place, sort_key) DO NOTHING;
          ELSE
            DELETE FROM ${pending} WHERE place = p.id AND sort_key = NEW.sort_key;
          END IF;
        END IF;
      END LOOP;`,
    ),
    ...trigger(
      'erased',
      'DELETE',
      `OLD.collection IS NOT NULL AND OLD.state <> ${REMOVED}`,
      `
      FOR p IN SELECT id FROM ${places} WHERE collection = OLD.collection LOOP${forget('OLD')}
      END LOOP;`,
    ),
  ]
}
