import { Agent, type IncomingMessage, request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { BODIES } from '../body-types/multipart-bodies.ts'
import { type RunningDemo, startDemo } from '../support/demo.ts'

// STRESS=full npx vitest run test/stress
const REQUESTS = process.env['STRESS'] === 'full' ? 100_000 : 3000
const CLIENTS = 16
const TIMEOUT = 600_000

let demo: RunningDemo
const failures: unknown[] = []
const onFailure = (error: unknown): void => void failures.push(error)
afterEach(async () => {
  process.off('uncaughtException', onFailure).off('unhandledRejection', onFailure)
  await demo.close()
})

/** Small and repeatable (mulberry32): the same requests in every run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 4294967296) * below)
  }
}

const random = createRandom(20_261_121)
const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)]!

const FORM_PART = '--b0undary\r\nContent-Disposition: form-data; name='
const UPLOAD = `${FORM_PART}title\r\n\r\nT\r\n${FORM_PART}file; filename=x\r\n\r\nPNG\r\n--b0undary--`

const SEEDS: readonly Buffer[] = [
  ...Array.from({ length: 20 }, () => Buffer.from(UPLOAD)),
  ...BODIES.map(([, body]) => Buffer.from(body as string)).filter(({ length }) => length < 2000),
  ...[
    '{"name":"x","priority":1}',
    '{"name":"x","email":"a@example.org","__proto__":{"role":"admin"}}',
    '[{"op":"add","path":"/a","value":1},{"op":"move","from":"/a","path":"/b"}]',
    '{"a":{"b":[1,2,{"c":"\\ud83d\\ude00"}]},"n":1e300}',
    'name=x&pri=5&a%5Bb%5D=%C3%BC',
    'plain text\r\nof two lines',
  ].map((text) => Buffer.from(text)),
]
const TOKENS: readonly Buffer[] = [
  ...['\r\n', '--b0undary', '--b0undary--', '"', '{', '[', ':', ',', '&', '=', '%', '%ff', '\\u0000', '\0', '1e999'],
  ...['filename="x"', 'Content-Type: text/plain; charset=utf-16', '__proto__', '\xff\xfe', ';', 'null', '-'],
].map((text) => Buffer.from(text, 'latin1'))
const TYPES: readonly (string | undefined)[] = [
  'multipart/form-data; boundary=b0undary',
  'multipart/form-data; boundary="b0undary"; charset=utf-8',
  'application/json',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/x-www-form-urlencoded',
  'text/plain; charset=iso-8859-1',
  'text/plain',
  'image/png',
  'multipart/mixed; boundary=b0undary',
  'nonsense',
  undefined,
]
const PATHS = [
  '/uploads',
  '/uploads',
  '/uploads',
  '/users',
  '/jobs',
  '/docs',
  '/articles',
  '/config/app',
  '/docs/x',
  '/users/1',
]
const METHODS = ['POST', 'POST', 'POST', 'PUT', 'PATCH']

function mutate(seed: Buffer): Buffer {
  let bytes = seed
  for (let edits = random(5); edits > 0; edits--) {
    const at = random(bytes.length + 1)
    const end = at + random(12)
    bytes = Buffer.concat([bytes.subarray(0, at), pick(TOKENS), bytes.subarray(random(3) === 0 ? at : end)])
  }
  return random(10) === 0 ? bytes.subarray(0, random(bytes.length + 1)) : bytes
}

interface Fuzzed {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Buffer
}

function createRequest(): Fuzzed {
  const body = mutate(pick(SEEDS))
  const type = pick(TYPES)
  const isMultipart = body.includes('b0undary') && random(4) !== 0
  const headers: Record<string, string> = {}
  if (isMultipart) headers['Content-Type'] = TYPES[0]!
  else if (type !== undefined) headers['Content-Type'] = type
  if (random(20) === 0) headers['Content-Encoding'] = pick(['gzip', 'identity', 'br', 'nonsense'])
  if (random(2) === 0) headers['Transfer-Encoding'] = 'chunked'
  return { method: pick(METHODS), path: pick(PATHS), headers, body }
}

/** The status of the answer; a request may also be cut off midway by its client. */
function send(agent: Agent, { method, path, headers, body }: Fuzzed): Promise<number | 'cut off'> {
  const isCutOff = random(50) === 0
  return new Promise((resolve, reject) => {
    const outgoing = request({ agent, host: '127.0.0.1', port: demo.port, method, path, headers })
    outgoing.on('response', (response: IncomingMessage) => {
      response.resume().on('close', () => resolve(response.statusCode!))
    })
    outgoing.on('error', (error) => (isCutOff ? resolve('cut off') : reject(error)))
    if (!isCutOff) {
      // In two pieces, or in one.
      if (random(3) === 0) outgoing.write(body.subarray(0, random(body.length + 1)))
      else outgoing.end(body)
      if (!outgoing.writableEnded) outgoing.end()
      return
    }
    outgoing.write(body, () => outgoing.destroy())
  })
}

describe('the service', () => {
  it(
    `answers ${REQUESTS} damaged requests without a 5xx, an uncaught exception or a hang (invariant I1)`,
    async () => {
      demo = await startDemo()
      process.on('uncaughtException', onFailure).on('unhandledRejection', onFailure)
      const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
      const statuses = new Map<number | 'cut off', number>()
      let left = REQUESTS
      const client = async (): Promise<void> => {
        while (left-- > 0) {
          const fuzzed = createRequest()
          const status = await send(agent, fuzzed).catch((error: unknown) => {
            throw new Error(`${JSON.stringify(fuzzed)}: ${String(error)}`)
          })
          if (typeof status === 'number' && status >= 500) failures.push({ status, ...fuzzed })
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: CLIENTS }, client))
      agent.destroy()
      expect(failures).toEqual([])
      for (const status of [201, 202, 400, 415, 422] as const)
        expect(statuses.get(status), String(status)).toBeGreaterThan(0)
      expect((await demo.send({ path: '/' })).status).toBe(200)
    },
    TIMEOUT,
  )
})
