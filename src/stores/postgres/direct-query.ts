import type { PostgresClient, PostgresQuery, PostgresValue } from './connection.ts'

/** The columns of a row, as text. */
export type Fields = readonly (string | null)[]

/** A query that can be sent directly: a statement whose columns are known without asking the database. */
export interface DirectStatement<Row> {
  readonly text: string
  readonly decode: (fields: Fields) => Row
}

/** What such a query uses of a connection of `pg`. */
interface DirectConnection {
  /** The texts of the statements that the connection keeps prepared, by name. */
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly stream: { write(bytes: Uint8Array): unknown }
}

/** Whether a client takes queries that write their own messages, as those of `pg` do unless they are pipelines. */
export function takesDirectQueries(client: PostgresClient): boolean {
  const { connection, pipeline } = client as unknown as { connection?: Partial<DirectConnection>; pipeline?: boolean }
  if (connection?.parsedStatements === undefined || pipeline === true) return false
  return typeof connection.stream?.write === 'function'
}

/**
 * A statement that writes its own messages, all of them in one piece, and does not ask which columns there are. A query
 * of `pg` costs 27 us with the 17 columns of a state, this one 15: the driver hands over what it reads, and nothing is
 * built from it but the row.
 *
 * `pg` calls such an object a `Submittable`; pg-cursor is another one. It is fulfilled as a promise is, so that code
 * which wraps `query` sees nothing unusual.
 */
export class DirectQuery<Row> implements PostgresQuery, PromiseLike<{ readonly rows: Row[] }> {
  readonly text: string
  readonly name: string
  readonly values: PostgresValue[]
  /** `pg` puts another one in its place where it has a limit of time of its own. */
  callback: (error: unknown, result?: { readonly rows: Row[] }) => void = () => {}
  readonly #decode: (fields: Fields) => Row
  readonly #rows: Row[] = []
  readonly #answer: Promise<{ readonly rows: Row[] }>

  /** @param name under which connections keep the statement prepared; empty: they do not */
  constructor({ text, decode }: DirectStatement<Row>, name: string, values: PostgresValue[]) {
    this.text = text
    this.name = name
    this.values = values
    this.#decode = decode
    this.#answer = new Promise((resolve, reject) => {
      this.callback = (error, result) => (error ? reject(error) : resolve(result!))
    })
  }

  // biome-ignore lint/suspicious/noThenProperty: see above
  then<Fulfilled, Rejected>(
    onFulfilled?: ((result: { readonly rows: Row[] }) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#answer.then(onFulfilled, onRejected)
  }

  submit({ parsedStatements, stream }: DirectConnection): void {
    const isPrepared = this.name !== '' && parsedStatements[this.name] !== undefined
    const bound = formatBind(this.name, this.values)
    stream.write(isPrepared ? bound : Buffer.concat([formatParse(this.name, this.text), bound]))
  }

  handleDataRow({ fields }: { readonly fields: Fields }): void {
    this.#rows.push(this.#decode(fields))
  }

  handleRowDescription(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback(undefined, { rows: this.#rows })
  }

  handleError(error: unknown): void {
    this.callback(error)
  }
}

const PARSE = 0x50
const BIND = 0x42
const TEXT = 0
const BINARY = 1
/** Execute the unnamed portal to its end, and Sync. */
const EXECUTE_AND_SYNC = Uint8Array.of(0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4)

/** The message that prepares a statement; the database finds the types of its parameters. */
function formatParse(name: string, text: string): Uint8Array {
  const body = Buffer.from(`${name}\0${text}\0\0\0`)
  const head = Buffer.allocUnsafe(5)
  head[0] = PARSE
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** The messages that bind values to a statement, run it, and end the implicit transaction; results are wanted as text. */
function formatBind(name: string, values: readonly PostgresValue[]): Uint8Array {
  const count = values.length
  const encoded: (string | Uint8Array | null)[] = new Array(count)
  // Type and length of the message, the empty name of the portal, the name of the statement, and the two counts.
  let size = 5 + 1 + name.length + 1 + 2 + 2 * count + 2 + 4 * count + 2
  for (let i = 0; i < count; i++) {
    const value = values[i]!
    const one = typeof value === 'object' ? value : String(value)
    encoded[i] = one
    if (one !== null) size += typeof one === 'string' ? Buffer.byteLength(one) : one.length
  }
  const message = Buffer.allocUnsafe(size + EXECUTE_AND_SYNC.length)
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
  at = message.writeInt16BE(0, at)
  message.set(EXECUTE_AND_SYNC, at)
  return message
}
