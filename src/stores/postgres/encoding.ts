import type { PostgresConnection } from './connection.ts'

/** `SQL_ASCII` keeps all bytes as they are. */
const ENCODINGS: readonly unknown[] = ['UTF8', 'SQL_ASCII']

/**
 * Refuses a database whose encoding lacks characters: a path could be written that can neither be read nor listed.
 * @throws Error that names the encoding
 */
export async function requireEncoding(connection: PostgresConnection): Promise<void> {
  const text = "SELECT current_setting('server_encoding') AS encoding"
  const [row] = await connection.read<{ encoding: string }>(text, [])
  if (ENCODINGS.includes(row?.encoding)) return
  throw new Error(`postgresStore needs a database with the encoding UTF8, not ${row?.encoding}.`)
}
