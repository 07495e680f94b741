/** What a client has read of a response. */
export interface ReceivedResponse {
  readonly status: number
  /** The reason phrase; empty on HTTP/2. */
  readonly phrase: string
  /** Names in lower case and values, in order, repeated fields as often as they were sent. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

/** A response as it came over the wire: what all clients of the tests return. */
export class Answer implements ReceivedResponse {
  readonly status: number
  readonly phrase: string
  readonly fields: ReceivedResponse['fields']
  readonly body: Buffer

  constructor({ status, phrase, fields, body }: ReceivedResponse) {
    this.status = status
    this.phrase = phrase
    this.fields = fields
    this.body = body
  }

  /** The value of a field; `undefined` when it is absent. @throws Error where it was sent more than once */
  readonly field = (name: string): string | undefined => {
    const values = this.values(name)
    if (values.length > 1) throw new Error(`The field ${name} was sent ${values.length} times.`)
    return values[0]
  }

  /** All values of a field, in their order. */
  values(name: string): string[] {
    return this.fields.filter(([key]) => key === name.toLowerCase()).map(([, value]) => value)
  }

  /** The fields by name; a repeated one has all its values. */
  get headers(): Readonly<Record<string, string | string[]>> {
    const groups: Record<string, string | string[]> = {}
    for (const [name, value] of this.fields) {
      const known = groups[name]
      groups[name] = known === undefined ? value : [known, value].flat()
    }
    return groups
  }

  get text(): string {
    return this.body.toString()
  }

  // biome-ignore lint/suspicious/noExplicitAny: a parsed body, looked at member by member
  json(): any {
    return JSON.parse(this.text)
  }
}

/** The fields of a response in the order of Node's `rawHeaders`. */
export function pairFields(raw: readonly string[]): ReceivedResponse['fields'] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1]!] as const] : []))
}
