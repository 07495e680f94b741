import { Agent, request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'
import { createRandom, type Random } from '../stress/fuzzer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { JSON_TYPE, linkOf, QUERY, TASKS } from './tasks.ts'

/** More in `npm run soak`, and by hand: `QUERY_STRINGS=100000 QUERY_SEED=7 npx vitest run test/queries/fuzz.test.ts`. */
const COUNT = Number(process.env['QUERY_STRINGS'] ?? 3000)
const SEED = Number(process.env['QUERY_SEED'] ?? 20260101)

const NAMES = [
  ...Object.keys(QUERY),
  'limit',
  'after',
  'sort',
  'count',
  'deleted',
  'owner',
  '/owner',
  '__proto__',
  'toString',
  '',
]
const OPERATORS = [
  '',
  '',
  '[ne]',
  '[gt]',
  '[gte]',
  '[lt]',
  '[lte]',
  '[exists]',
  '[prefix]',
  '[]',
  '[in]',
  '[ne',
  '%5Bne%5D',
  '[__proto__]',
]
const VALUES = [
  ...[
    '',
    'open',
    'true',
    'false',
    '0',
    '-0',
    '1',
    '2.5',
    '1e308',
    '1e999',
    '9007199254740992',
    'NaN',
    'Infinity',
    'null',
  ],
  ...[
    '2026-01-01T23:00:00Z',
    '2026-01-02T00:00:00%2B02:00',
    '2016-12-31T23:59:60Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
  ],
  ...[
    '%00',
    '%ff',
    '%',
    '%zz',
    '%ED%A0%80',
    '%F0%9F%98%80',
    '%C3%BC',
    '+',
    '%2B',
    "'",
    '"',
    '%5C',
    "';--",
    '%25',
    '%5F',
    '*',
    '{}',
    '[]',
  ],
  ...[
    'priority',
    '-priority',
    'status,-done',
    'dueAt,city',
    'owner',
    '-',
    ',',
    '--status',
    '1,2,3',
    'x'.repeat(256),
    'x'.repeat(257),
  ],
]

function pick<Value>(random: Random, list: readonly Value[]): Value {
  return list[random(list.length)]!
}

function makeQuery(random: Random, cursors: readonly string[]): string {
  const parts = Array.from({ length: random(5) }, () => {
    if (random(12) === 0) return Array.from({ length: random(20) }, () => String.fromCharCode(33 + random(94))).join('')
    if (random(5) === 0) return `after=${mutate(random, pick(random, cursors))}`
    return `${pick(random, NAMES)}${pick(random, OPERATORS)}=${pick(random, VALUES)}`
  })
  // Some are repeated.
  if (parts.length > 0 && random(6) === 0) for (let i = random(12); i > 0; i--) parts.push(parts[0]!)
  return parts.join(pick(random, ['&', '&', '&', '&&', ';'])).replaceAll(/[ #]/g, '')
}

function mutate(random: Random, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  for (let i = random(4); i > 0 && bytes.length > 0; i--) bytes[random(bytes.length)] = random(256)
  return bytes.subarray(0, random(4) === 0 ? random(bytes.length + 1) : bytes.length).toString('base64url')
}

describe('queries of any kind', () => {
  it('are answered 200, 400 or 414, and show only items in scope', { timeout: 600_000 }, async () => {
    const { port, send } = await serve(memoryStore(), {
      resources: {
        '/tasks': collection({
          query: QUERY,
          count: true,
          deletion: 'soft',
          scope: ({ headers }) => ({ owner: headers['x-user'] as string }),
        }),
      },
    })
    for (const user of ['ada', 'eve']) {
      for (const task of TASKS) await send('POST', '/tasks', [JSON_TYPE, `X-User: ${user}`], JSON.stringify(task))
    }
    const cursors: string[] = []
    for (const query of ['', 'sort=status', 'sort=-priority,dueAt', 'status[ne]=x', 'sort=city&done=true']) {
      const page = await send('GET', `/tasks?limit=1&${query}`, ['X-User: ada'])
      const next = linkOf(page.field('Link'), 'next')
      if (next !== undefined) cursors.push(new URL(next, 'http://demo.test').searchParams.get('after')!)
    }
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    closeAfterTest(async () => agent.destroy())
    const ask = (query: string, isContent: boolean): Promise<{ readonly status: number; readonly text: string }> =>
      new Promise((resolve, reject) => {
        const headers = { 'x-user': 'ada', ...(isContent && { 'content-type': 'application/x-www-form-urlencoded' }) }
        const [method, path] = isContent ? ['QUERY', '/tasks'] : ['GET', `/tasks?${query}`]
        const sent = request({ port, agent, method, path, headers }, (answer) => {
          let text = ''
          answer.setEncoding('utf8').on('data', (chunk) => (text += chunk))
          answer.on('end', () => resolve({ status: answer.statusCode!, text }))
        })
        sent.on('error', reject).end(isContent ? query : undefined)
      })
    const random = createRandom(SEED)
    const statuses = new Map<number, number>()
    for (let i = 0; i < COUNT; i++) {
      const query = makeQuery(random, cursors)
      const { status, text } = await ask(query, random(4) === 0)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (![200, 400, 414].includes(status)) expect.fail(`${status} for ${query}`)
      if (status === 200) for (const item of JSON.parse(text)) expect(item.owner).toBe('ada')
      if (status === 400) expect(JSON.parse(text).detail, query).toEqual(expect.any(String))
    }
    expect(statuses.get(200)).toBeGreaterThan(COUNT / 20)
    expect(statuses.get(400)).toBeGreaterThan(COUNT / 4)
  })
})
