import { Agent, type IncomingMessage, request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { BODIES } from '../body-types/multipart-bodies.ts'
import { type RunningDemo, startDemo } from '../support/demo.ts'
import { createRandom } from './fuzzer.ts'

/** More by hand: `FUZZ_REQUESTS=100000 FUZZ_SEED=7 npx vitest run test/stress/body-fuzz.test.ts`. */
const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 1000)
const random = createRandom(Number(process.env['FUZZ_SEED'] ?? 20260101))
const CLIENTS = 16

let demo: RunningDemo
const faults: unknown[] = []
const onFault = (fault: unknown): void => void faults.push(fault)
afterEach(async () => {
  process.off('uncaughtException', onFault).off('unhandledRejection', onFault)
  await demo.close()
})

const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)]!

const PART = '--b0undary\r\nContent-Disposition: form-data; name='
const UPLOAD = `${PART}title\r\n\r\nT\r\n${PART}file; filename=x\r\n\r\nPNG\r\n--b0undary--`
const SEEDS: readonly Buffer[] = [
  ...BODIES.map(([, body]) => Buffer.from(body as string)).filter(({ length }) => length < 2000),
  ...Array.from({ length: 20 }, () => Buffer.from(UPLOAD)),
  ...[
    '{"name":"x","priority":1}',
    '{"name":"x","email":"a@example.org","__proto__":{"role":"admin"}}',
    '{"a":{"b":[1,2,{"c":"\\ud83d\\ude00"}]},"n":1e300}',
    'name=x&pri=5&a%5Bb%5D=%C3%BC',
    'plain text\r\nof two lines',
  ].map((text) => Buffer.from(text)),
]
const TOKENS: readonly Buffer[] = [
  ...['\r\n', '--b0undary', '--b0undary--', '"', '{', '[', ':', ',', '&', '=', '%', '%ff', '\\u0000', '\0', '1e999'],
  ...['filename="x"', 'Content-Type: text/plain; charset=utf-16', '__proto__', '\xff\xfe', ';', 'null', '-'],
].map((text) => Buffer.from(text, 'latin1'))
const MULTIPART = 'multipart/form-data; boundary=b0undary'
const TYPES: readonly (string | undefined)[] = [
  ...['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'text/plain; charset=iso-8859-1'],
  ...[`${MULTIPART}; charset=utf-8`, 'multipart/mixed; boundary=b0undary', 'nonsense', undefined],
]

function mutate(seed: Buffer): Buffer {
  let bytes = seed
  for (let edits = random(5); edits > 0; edits--) {
    const at = random(bytes.length + 1)
    const end = random(3) === 0 ? at : at + random(12)
    bytes = Buffer.concat([bytes.subarray(0, at), pick(TOKENS), bytes.subarray(end)])
  }
  return random(10) === 0 ? bytes.subarray(0, random(bytes.length + 1)) : bytes
}

interface Fuzzed {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Where the content is cut into two chunks. */
  readonly cut: number
  /** Whether the client goes away after the first of them. */
  readonly isAborted: boolean
}

function createRequest(): Fuzzed {
  const body = mutate(pick(SEEDS))
  const type = body.includes('b0undary') && random(8) !== 0 ? MULTIPART : pick(TYPES)
  const headers: Record<string, string> = type === undefined ? {} : { 'Content-Type': type }
  if (random(20) === 0) headers['Content-Encoding'] = pick(['gzip', 'identity', 'br'])
  const path = pick(['/uploads', '/uploads', '/users', '/jobs', '/docs', '/articles'])
  return { path, headers, body, cut: random(body.length + 1), isAborted: random(50) === 0 }
}

/** The status of the answer; `undefined` for a request that its client gives up. */
function send(agent: Agent, { path, headers, body, cut, isAborted }: Fuzzed): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ agent, host: '127.0.0.1', port: demo.port, method: 'POST', path, headers })
    outgoing.on('response', (response: IncomingMessage) => {
      response.resume().on('close', () => resolve(response.statusCode))
    })
    outgoing.on('error', (error) => (isAborted ? resolve(undefined) : reject(error)))
    outgoing.write(body.subarray(0, cut), () => {
      if (isAborted) outgoing.destroy()
    })
    if (!isAborted) outgoing.end(body.subarray(cut))
  })
}

describe('POST', () => {
  it(`of ${REQUESTS} damaged bodies brings no 5xx, no uncaught exception and no hang (I1, threats 58 to 80)`, async () => {
    demo = await startDemo()
    process.on('uncaughtException', onFault).on('unhandledRejection', onFault)
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
    const statuses = new Set<number | undefined>()
    let left = REQUESTS
    const client = async (): Promise<void> => {
      while (left-- > 0) {
        const fuzzed = createRequest()
        const status = await send(agent, fuzzed)
        if (status !== undefined && status >= 500) faults.push({ status, ...fuzzed, body: String(fuzzed.body) })
        statuses.add(status)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    agent.destroy()
    expect(faults).toEqual([])
    expect([...statuses]).toEqual(expect.arrayContaining([201, 202, 400, 415, 422, undefined]))
    expect((await demo.send({ path: '/' })).status).toBe(200)
  }, 600_000)
})
