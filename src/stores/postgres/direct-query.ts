import type { PostgresQuery, PostgresValue } from './connection.ts'

const PARSE = 0x50
const BIND = 0x42
const TEXT = 0
const BINARY = 1

/** Runs what was bound, to its end. */
const EXECUTE: Uint8Array = Uint8Array.of(0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0)
/** Ends the implicit transaction. */
const SYNC: Uint8Array = Uint8Array.of(0x53, 0, 0, 0, 4)

/** The columns of a row, as text. */
export type Fields = readonly (string | null)[]

/** A statement whose columns are known without asking the database. */
export interface DirectStatement {
  readonly name: string
  readonly text: string
  readonly decode: (fields: Fields) => unknown
}

/** What a direct query uses of a connection of `pg`. */
interface DirectConnection {
  /** The texts of the statements that the connection keeps prepared, by name. */
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly stream: { write(bytes: Uint8Array): unknown }
}

/** The rows of the first run: for code that looks at what passes. */
interface DirectResult {
  readonly rows: readonly unknown[]
}

/** Whether a client takes queries that write their own messages, as those of `pg` do unless they are pipelines. */
export function takesDirectQueries(client: object): boolean {
  const { connection, pipeline } = client as { connection?: Partial<DirectConnection>; pipeline?: boolean }
  if (connection?.parsedStatements === undefined || pipeline === true) return false
  return typeof connection.stream?.write === 'function'
}

/**
 * One or several runs of a statement, all or nothing, which writes its own messages in one piece and does not ask which
 * columns there are. A query of `pg` costs 27 us with the 17 columns of a state, this one 15: nothing is built from what
 * the driver reads but the rows.
 *
 * `pg` calls such an object a `Submittable`; pg-cursor is another one. It is fulfilled as a promise is, so that code
 * which wraps `query` sees nothing unusual.
 */
export class DirectQuery implements PostgresQuery, PromiseLike<DirectResult> {
  readonly text: string
  readonly name: string
  /** The rows of each run. */
  readonly results: unknown[][] = []
  /** `pg` puts another one in its place where it has a limit of time of its own. */
  callback: (error: unknown, result?: DirectResult) => void = () => {}
  readonly #decode: (fields: Fields) => unknown
  readonly #runs: readonly PostgresValue[][]
  readonly #answer: Promise<DirectResult>
  #rows: unknown[] = []

  /**
   * @param name under which connections keep the statement prepared; empty: they do not
   * @param runs the values of each run
   */
  constructor({ text, decode }: DirectStatement, name: string, runs: readonly PostgresValue[][]) {
    this.text = text
    this.name = name
    this.#runs = runs
    this.#decode = decode
    this.#answer = new Promise((resolve, reject) => {
      this.callback = (error, result) => (error ? reject(error) : resolve(result!))
    })
  }

  /** Of the first run: for code that looks at what passes. */
  get values(): PostgresValue[] {
    return this.#runs[0]!
  }

  // biome-ignore lint/suspicious/noThenProperty: see above
  then<Fulfilled, Rejected>(
    onFulfilled?: ((result: DirectResult) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#answer.then(onFulfilled, onRejected)
  }

  submit({ parsedStatements, stream }: DirectConnection): void {
    const { name } = this
    const messages: Uint8Array[] = []
    if (name === '' || parsedStatements[name] === undefined) messages.push(formatParse(name, this.text))
    for (const values of this.#runs) messages.push(formatBind(name, values), EXECUTE)
    messages.push(SYNC)
    stream.write(Buffer.concat(messages))
  }

  handleDataRow({ fields }: { readonly fields: Fields }): void {
    this.#rows.push(this.#decode(fields))
  }

  handleCommandComplete(): void {
    this.results.push(this.#rows)
    this.#rows = []
  }

  handleReadyForQuery(): void {
    this.callback(undefined, { rows: this.results[0] ?? [] })
  }

  handleError(error: unknown): void {
    this.callback(error)
  }

  handleRowDescription(): void {}
}

/** The message that prepares a statement; the database finds the types of its parameters. */
function formatParse(name: string, text: string): Uint8Array {
  const body = Buffer.from(`${name}\0${text}\0\0\0`)
  const head = Buffer.allocUnsafe(5)
  head[0] = PARSE
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** The message that binds values to a statement; the results are wanted as text. */
function formatBind(name: string, values: readonly PostgresValue[]): Uint8Array {
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
