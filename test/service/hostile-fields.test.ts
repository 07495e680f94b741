import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { MEASURED } from '../support/measured.ts'
import { serve, serveFixtures } from './serve.ts'

const text = 'Content-Type: text/plain'
const fill = (unit: string): string => unit.repeat(Math.floor(15_000 / unit.length))

const values: Readonly<Record<string, string>> = {
  'a list of tags': fill('"a",'),
  'weak tags': fill('W/"a", '),
  'marks of weakness': fill('W/'),
  'quotes that never end': fill('"a'),
  blanks: `"a"${fill(' ')}x`,
  tabs: `a${fill('\t ')}a`,
  commas: fill(','),
  semicolons: `a/b${fill(';')}`,
  parameters: `text/plain${fill(';a=b')}`,
  backslashes: `text/plain;a="${fill('\\"')}`,
  digits: `bytes=${fill('9')}-`,
  ranges: `bytes=${fill('0-,')}`,
  'ranges and blanks': `bytes=${fill('0-0 , ')}`,
  qualities: fill('a/b;q=0.1,'),
  'a long token': fill('a'),
  'a long scheme': `${fill('x')} y`,
  base64: `Basic ${fill('QUFB')}`,
  'a token': `Bearer ${fill('a.b.')}`,
  'digest parameters': `Digest ${fill('a="b",')}`,
  'an origin': `https://${fill('a.')}example`,
  forwarded: fill('for=192.0.2.1;proto=https,'),
}

const names = [
  ...['If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since', 'If-Range', 'Range', 'Accept'],
  ...['Authorization', 'Origin', 'Content-Type', 'Content-Encoding', 'Prefer', 'Access-Control-Request-Headers'],
  ...[
    'Access-Control-Request-Method',
    'X-HTTP-Method-Override',
    'Content-Disposition',
    'Cookie',
    'Host',
    'Accept-Encoding',
  ],
]

describe('15 000 characters in a field (threat 39)', () => {
  it.each(names)('cost no time and no 500 in %s', MEASURED, async (name) => {
    const { send } = await serve(memoryStore(), {
      auth: { schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })], requireAuth: () => false },
      cors: { origins: ['https://app.example', 'https://*.example.test'] },
      methodOverride: true,
    })
    await send('PUT', '/a', [text], 'old')
    for (const value of Object.values(values)) {
      for (const method of ['GET', 'PUT', 'POST', 'OPTIONS']) {
        const type = name === 'Content-Type' ? [] : [text]
        const start = process.cpuUsage()
        const answer = await send(method, '/a', [...type, `${name}: ${value}`], 'new')
        const { user, system } = process.cpuUsage(start)
        expect(answer.status).toBeLessThan(500)
        // Client, server and whatever else the process does meanwhile.
        expect(user + system).toBeLessThan(200_000)
      }
    }
  })

  it('judge a long list of tags by its last one (row H8)', async () => {
    const { send } = await serveFixtures()
    expect((await send('GET', '/docs/a.bin', [`If-None-Match: ${fill('"a",')}"e"`])).status).toBe(304)
    expect((await send('GET', '/docs/a.bin', [`If-Match: ${fill('"a",')}"e"`])).status).toBe(200)
    expect((await send('PUT', '/docs/a.bin', [text, `If-Match: ${fill('"a",')}"b"`], 'x')).status).toBe(412)
  })
})

describe('fields that an object of the process inherits', () => {
  it.each([
    ['if-none-match', '*'],
    ['if-match', '"x"'],
    ['range', 'bytes=0-1'],
    ['if-unmodified-since', 'Mon, 01 Jan 2001 00:00:00 GMT'],
    ['accept', 'image/png'],
    ['content-encoding', 'gzip'],
    ['prefer', 'return=minimal'],
    ['transfer-encoding', 'gzip, chunked'],
    ['x-http-method-override', 'DELETE'],
  ])('are not fields of a request: %s', async (name, value) => {
    const { send } = await serve(memoryStore(), { methodOverride: true })
    const json = ['Content-Type: application/json']
    await send('PUT', '/a', json, '{"a":1}')
    const requests: Parameters<typeof send>[] = [
      ['GET', '/a'],
      ['PUT', '/a', json, '{"a":1}'],
      ['POST', '/b', json, '{}'],
      ['PATCH', '/a', ['Content-Type: application/merge-patch+json'], '{"a":2}'],
    ]
    const statuses = async () => {
      const answers = []
      for (const request of requests) answers.push((await send(...request)).status)
      return answers
    }
    const usual = await statuses()
    Object.defineProperty(Object.prototype, name, { value, configurable: true })
    try {
      expect(await statuses()).toEqual(usual)
    } finally {
      delete (Object.prototype as Record<string, unknown>)[name]
    }
  })
})
