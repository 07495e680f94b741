import type { PostgresClient, PostgresQuery, PostgresValue } from './connection.ts'
import { formatParse, formatRun } from './messages.ts'

/** The columns of a row, as text. */
export type Fields = readonly (string | null)[]

/** A statement whose columns are known without asking the database. */
export interface DirectStatement<Row> {
  readonly text: string
  readonly decode: (fields: Fields) => Row
}

/** What a direct query uses of a connection of `pg`. */
interface DirectConnection {
  /** The texts of the statements that the connection keeps prepared, by name. */
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly stream: { write(bytes: Uint8Array): unknown }
}

interface DirectClient {
  readonly connection?: Partial<DirectConnection>
  readonly pipeline?: boolean
}

interface Rows<Row> {
  readonly rows: Row[]
}

/** Whether a client takes queries that write their own messages, as those of `pg` do unless they are pipelines. */
export function takesDirectQueries(client: object): boolean {
  const { connection, pipeline } = client as DirectClient
  if (connection?.parsedStatements === undefined || pipeline === true) return false
  return typeof connection.stream?.write === 'function'
}

/** Whether a client keeps a statement prepared, and nothing stands between it and its queries. */
export function takesQueriesAhead(client: PostgresClient, name: string): boolean {
  const { parsedStatements } = (client as object as DirectClient).connection ?? {}
  const { query } = Object.getPrototypeOf(client) as Partial<PostgresClient>
  return parsedStatements?.[name] !== undefined && client.query === query
}

/**
 * A statement that writes its own messages, all of them in one piece, and does not ask which columns there are. A query
 * of `pg` costs 27 us with the 17 columns of a state, this one 15: the driver hands over what it reads, and nothing is
 * built from it but the row.
 *
 * `pg` calls such an object a `Submittable`; pg-cursor is another one. It is fulfilled as a promise is, so that code
 * which wraps `query` sees nothing unusual.
 */
export class DirectQuery<Row> implements PostgresQuery, PromiseLike<Rows<Row>> {
  readonly text: string
  readonly name: string
  readonly values: PostgresValue[]
  /** `pg` puts another one in its place where it has a limit of time of its own. */
  callback: (error: unknown, result?: Rows<Row>) => void = () => {}
  readonly #decode: (fields: Fields) => Row
  readonly #rows: Row[] = []
  readonly #answer: Promise<Rows<Row>>
  #client: PostgresClient | undefined
  #next: DirectQuery<unknown> | undefined
  #isWritten = false

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

  /**
   * Sends another query with this one, ahead of its answer: one write for both, and mostly one read. Each is a transaction
   * of its own. Only where {@link takesQueriesAhead}.
   */
  follow(client: PostgresClient, next: DirectQuery<unknown>): void {
    this.#client = client
    this.#next = next
  }

  // biome-ignore lint/suspicious/noThenProperty: see above
  then<Fulfilled, Rejected>(
    onFulfilled?: ((result: Rows<Row>) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#answer.then(onFulfilled, onRejected)
  }

  submit({ parsedStatements, stream }: DirectConnection): void {
    if (this.#isWritten) return
    const { name, text } = this
    const messages: Uint8Array[] = []
    if (name === '' || parsedStatements[name] === undefined) messages.push(formatParse(name, text))
    for (let query: DirectQuery<unknown> | undefined = this as DirectQuery<unknown>; query; query = query.#next) {
      messages.push(formatRun(query.name, query.values))
      query.#isWritten = true
    }
    stream.write(messages.length === 1 ? messages[0]! : Buffer.concat(messages))
  }

  handleDataRow({ fields }: { readonly fields: Fields }): void {
    this.#rows.push(this.#decode(fields))
  }

  handleRowDescription(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#awaitNext()
    this.callback(undefined, { rows: this.#rows })
  }

  handleError(error: unknown): void {
    this.#awaitNext()
    this.callback(error)
  }

  /** The next answer that the connection receives is that of the next query. */
  #awaitNext(): void {
    const next = this.#next
    this.#next = undefined
    if (next !== undefined) this.#client!.query(next)
  }
}
