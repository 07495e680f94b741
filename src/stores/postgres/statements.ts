import { createHash } from 'node:crypto'
import { encodeEntry, padEntry, tablesOf } from '../sql/queries/index-tables.ts'
import { escapeText, HIDDEN, KEPT_AFTER_EXPIRY, LIVE, type StateRow } from '../sql/rows.ts'
import type { Content } from '../types.ts'
import type { PostgresStatement, PostgresValue } from './connection.ts'
import type { Fields } from './direct-query.ts'
import { CONTENT, FACTS, NOW, type WriteStatementName, writeWriteStatements } from './write-statements.ts'

type StatementName = WriteStatementName | keyof ReturnType<typeof writeStatements>

/** Begins the id of content that lies in a content store; versions, which name chunks, never have it. */
export const KEY_MARK = '.'

export type PostgresStatements = Readonly<Record<StatementName, PostgresStatement>>

/** What the statements are decoded by that run for most requests, with values of an index or without. */
const DECODERS: { readonly [Name in StatementName]?: PostgresStatement['decode'] } = {
  readState: decodeState,
  readFacts: decodeState,
  listLive: decodeState,
  listAll: decodeState,
  createState: decodeCreated,
  putState: decodeWritten,
  putNamed: decodeWritten,
  replaceState: decodeWritten,
}

/** They read or write the row of one path, which is their first value, and lock no row that belongs to several. */
const SHARED: readonly StatementName[] = ['readState', 'readFacts', 'createState', 'createStateIndexed', 'replaceState']

/** Every statement of the store. The name tells the text apart from that of any other release or prefix. */
export function nameStatements(prefix: string): PostgresStatements {
  const statements: Record<string, PostgresStatement> = {}
  for (const [key, text] of Object.entries({ ...writeStatements(prefix), ...writeWriteStatements(prefix) })) {
    const digest = createHash('sha256').update(text).digest('base64url')
    const name = `http-resource-service ${key} ${digest.slice(0, 16)}`
    const decode = DECODERS[key.replace('Indexed', '') as StatementName]
    statements[key] = { name, text, decode, isShared: SHARED.includes(key as StatementName) }
  }
  return statements as PostgresStatements
}

/** Those that write no state of a path. */
function writeStatements(prefix: string) {
  const { states, counters, contents, chunks } = tablesOf(prefix)

  const row = `${FACTS}, ${CONTENT}, sort_key`
  const listed = (state: number) => `FROM ${states} WHERE collection = $1::bytea AND state = ${state}
    AND sort_key > $2::bytea ORDER BY sort_key LIMIT $3::integer`
  const forgotten = `${NOW} - ${KEPT_AFTER_EXPIRY}`
  const touched = `${contents} SET expires = ${NOW} + $2::bigint WHERE id = $1::text AND expires > 0`
  const insertChunk = `WITH touched AS (UPDATE ${touched} RETURNING id)
    INSERT INTO ${chunks} SELECT id, $3::integer, $4::bytea FROM touched`

  return {
    readState: `SELECT ${FACTS}, ${CONTENT} FROM ${states} WHERE path = $1::bytea`,
    readFacts: `SELECT ${FACTS} FROM ${states} WHERE path = $1::bytea`,
    holdState: `SELECT 1 FROM ${states} WHERE path = $1::bytea AND state = ${LIVE} FOR SHARE`,
    listLive: `SELECT ${row} ${listed(LIVE)}`,
    listAll: `SELECT * FROM ((SELECT ${row} ${listed(LIVE)}) UNION ALL (SELECT ${row} ${listed(HIDDEN)})) AS members
      ORDER BY sort_key LIMIT $3::integer`,

    // Beyond 2^53 - 1 there is no row, and so no name.
    leaseNames: `INSERT INTO ${counters} AS c VALUES ($1::bytea, 1 + $2::bigint) ON CONFLICT (collection) DO UPDATE SET
      next = c.next + $2 WHERE c.next + $2 <= ${Number.MAX_SAFE_INTEGER + 1} RETURNING next`,

    // `expires` of content: null while a path shows it; otherwise the time from which the sweep may take it.
    beginContent: `INSERT INTO ${contents} VALUES ($1::text, ${NOW} + $2::bigint)`,
    addChunk: `${insertChunk} RETURNING 1`,
    addTwoChunks: `${insertChunk} UNION ALL SELECT id, $3::integer + 1, $5::bytea FROM touched RETURNING 1`,
    linkContent: `UPDATE ${contents} SET expires = NULL WHERE id = $1::text AND expires > 0 RETURNING 1`,
    releaseContent: `UPDATE ${contents} SET expires = ${NOW} + $2::bigint WHERE id = $1::text`,
    abandonContent: `UPDATE ${contents} SET expires = 0 WHERE id = $1::text AND expires IS NOT NULL RETURNING 1`,
    readChunk: `SELECT encode(substring(bytes FROM $3::integer FOR $4::integer), 'base64') AS bytes
      FROM ${chunks} WHERE content_id = $1::text AND chunk = $2::integer`,
    readAcross: `SELECT encode(substring(a.bytes FROM $3::integer) || substring(b.bytes FOR $4::integer), 'base64') AS bytes
      FROM ${chunks} AS a, ${chunks} AS b WHERE a.content_id = $1::text AND a.chunk = $2::integer
      AND b.content_id = $1 AND b.chunk = $2 + 1`,

    // The condition stands twice: a row found by the inner query may have been written anew meanwhile.
    sweepStates: `DELETE FROM ${states} WHERE path IN (SELECT path FROM ${states} WHERE expires < ${forgotten} LIMIT 500)
      AND expires < ${forgotten} RETURNING 1`,
    // 0 marks content as lost: no write can link it any more, so its chunks can go in several steps.
    claimExpired: `UPDATE ${contents} SET expires = 0 WHERE id IN (SELECT id FROM ${contents} WHERE expires < ${NOW}
      AND left(id, 1) <> '${KEY_MARK}' ORDER BY expires LIMIT 64) AND expires < ${NOW} RETURNING id`,
    // With a second condition on the id, Postgres would look at all chunks of the contents.
    sweepChunks: `DELETE FROM ${chunks} WHERE (content_id, chunk) IN (SELECT content_id, chunk FROM ${chunks}
      WHERE content_id = ANY(string_to_array($1::text, ',')) ORDER BY content_id, chunk LIMIT 64)`,
    // Not once `sweepChunks` finds none: that may be because another process removes some at the same moment, and leaves the rest.
    sweepContents: `DELETE FROM ${contents} AS c WHERE id = ANY(string_to_array($1::text, ',')) AND expires = 0
      AND NOT EXISTS (SELECT 1 FROM ${chunks} WHERE content_id = c.id)`,

    // Content in a content store: its id is its key behind a mark.
    readIdentity: `SELECT id FROM ${prefix}identity`,
    touchContent: `UPDATE ${touched}`,
    /** Rows that were not claimed before come first: content that can never be removed keeps no other content waiting. */
    claimKeys: `UPDATE ${contents} SET expires = 0 WHERE id IN (SELECT id FROM ${contents} WHERE expires < ${NOW}
      AND left(id, 1) = '${KEY_MARK}' ORDER BY expires DESC, random() LIMIT 64) AND expires < ${NOW} RETURNING id`,
    // Among a thousand states: one statement for all others might never end in time. No byte of a path is 255.
    findChunked: `WITH last AS (SELECT path FROM ${states} WHERE path > $1::bytea ORDER BY path LIMIT 1 OFFSET 999)
      SELECT encode(path, 'base64') AS path, id, size FROM ((SELECT path, content_id AS id, size FROM ${states}
      WHERE path > $1 AND path <= COALESCE((SELECT path FROM last), decode('ff', 'hex')) AND content_id IS NOT NULL
      AND left(content_id, 1) <> '${KEY_MARK}' ORDER BY path LIMIT 1)
      UNION ALL SELECT path, NULL, NULL FROM last) AS found ORDER BY id LIMIT 1`,
    findContentOf: `SELECT content_id AS id FROM ${states} WHERE path = $1::bytea`,
    /** The version stays: the bytes are the same. */
    moveContent: `UPDATE ${states} SET content_id = $3::text, revision = version
      WHERE path = $1::bytea AND content_id = $2::text RETURNING 1`,
    /** $1 ids, with commas between them. */
    findKnown: `SELECT id FROM ${contents} WHERE id = ANY(string_to_array($1::text, ','))`,
  }
}

/** A row, and the time at which the database read it. */
export type DatedRow = StateRow & { readonly now: number }

/** A row of {@link FACTS}, and of {@link CONTENT} behind them. */
function decodeState(fields: Fields): DatedRow {
  return {
    path: fields[0]!,
    state: Number(fields[1]),
    version: fields[2]!,
    changed: Number(fields[3]),
    strong: fields[4] === 't',
    expires: fields[5]!,
    size: Number(fields[6]),
    content_type: fields[7]!,
    content_encoding: fields[8]!,
    content_language: fields[9]!,
    filename: fields[10]!,
    content_id: fields[11]!,
    sha256: fields[12],
    indexed_by: fields[13]!,
    indexed: fields[14]!,
    now: Number(fields[15]),
    content: fields[16],
  }
}

/** What a statement tells of the row that it wrote. */
export interface WrittenRow {
  readonly changed: number
  readonly strong: boolean
  readonly was_state: number | null
  readonly next: number | null
}

/** The date of a row that was written for the first time. */
function decodeCreated([changed, strong]: Fields): Pick<WrittenRow, 'changed' | 'strong'> {
  return { changed: Number(changed), strong: strong === 't' }
}

/** A row of {@link WRITTEN_FACTS} and `next`. */
function decodeWritten([changed, strong, was, next]: Fields): WrittenRow {
  return {
    changed: Number(changed),
    strong: strong === 't',
    was_state: was === null ? null : Number(was),
    next: next === null ? null : Number(next),
  }
}

/** What the index of a collection has of a row, in the order of the statements; nothing without values. */
export function listIndexed({ indexed }: Pick<Content, 'indexed'>): readonly PostgresValue[] {
  if (indexed === undefined) return []
  return [
    indexed.index.version,
    JSON.stringify(indexed.values),
    ...padEntry(encodeEntry(indexed.index, indexed.values)),
  ]
}

/** Milliseconds as Postgres counts them: as a whole number, to which a time can be added. */
export function toCountable(milliseconds: number): number {
  return Math.min(Math.floor(milliseconds), 2 ** 52)
}

/** Keys are bytes. */
export function encodeKey(text: string): Uint8Array {
  return Buffer.from(escapeText(text), 'utf8')
}
