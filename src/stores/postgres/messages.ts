import type { PostgresValue } from './connection.ts'

const PARSE = 0x50
const BIND = 0x42
const TEXT = 0
const BINARY = 1

/** Runs what was bound, to its end. */
export const EXECUTE: Uint8Array = Uint8Array.of(0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0)
/** Ends the implicit transaction. */
export const SYNC: Uint8Array = Uint8Array.of(0x53, 0, 0, 0, 4)

/** The message that prepares a statement; the database finds the types of its parameters. */
export function formatParse(name: string, text: string): Uint8Array {
  const body = Buffer.from(`${name}\0${text}\0\0\0`)
  const head = Buffer.allocUnsafe(5)
  head[0] = PARSE
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** The message that binds values to a statement; the results are wanted as text. */
export function formatBind(name: string, values: readonly PostgresValue[]): Uint8Array {
  const count = values.length
  const encoded: (string | Uint8Array | null)[] = []
  // Type and length of the message, the empty name of the portal, the name of the statement, and three counts.
  let size = 5 + 1 + name.length + 1 + 2 + 2 * count + 2 + 4 * count + 2
  for (const value of values) {
    const one = typeof value === 'object' ? value : String(value)
    encoded.push(one)
    if (one !== null) size += typeof one === 'string' ? Buffer.byteLength(one) : one.length
  }
  const message = Buffer.allocUnsafe(size)
  message[0] = BIND
  message.writeInt32BE(size - 1, 1)
  message[5] = 0
  let at = 6 + message.write(name, 6, 'latin1')
  message[at++] = 0
  at = message.writeInt16BE(count, at)
  for (const one of encoded) at = message.writeInt16BE(one instanceof Uint8Array ? BINARY : TEXT, at)
  at = message.writeInt16BE(count, at)
  for (const one of encoded) {
    if (one === null) {
      at = message.writeInt32BE(-1, at)
      continue
    }
    const start = at + 4
    if (typeof one === 'string') at = start + message.write(one, start)
    else {
      message.set(one, start)
      at = start + one.length
    }
    message.writeInt32BE(at - start, start - 4)
  }
  // No format of a column: all of them are text.
  message.writeInt16BE(0, at)
  return message
}
