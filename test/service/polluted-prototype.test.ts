import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let worker: Worker
let port = 0
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

beforeAll(async () => {
  // Of the source: Node 20 loads no TypeScript in a worker.
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('polluted-server.mjs', import.meta.url))],
    ...{ bundle: true, format: 'esm', platform: 'node', write: false, external: ['kerberos'] },
  })
  worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(outputFiles[0]!.text)}`))
  ;[port] = (await once(worker, 'message')) as [number]
})
afterAll(() => {
  agent.destroy()
  return worker.terminate()
})

type Step = 'construct' | 'pollute' | 'clean'

async function run(steps: readonly Step[], name = '', value: unknown = undefined): Promise<string> {
  worker.postMessage({ steps, name, value })
  return ((await once(worker, 'message')) as [string])[0]
}

type Ask = readonly [method: string, path: string, fields?: Readonly<Record<string, string>>, body?: string]

function ask([method, path, headers = {}, body]: Ask): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', method, path, headers, agent }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      res.on('end', () => {
        const fields = res.rawHeaders.filter((_, i, all) => !/^(?:date|etag|last-modified)$/i.test(all[i - (i % 2)]!))
        const known = text.replaceAll(/nonce="[^"]+"/g, 'nonce')
        resolve([res.statusCode, ...fields, known].join('|').replaceAll(/nonce="[^"]+"|\d{13}/g, ''))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const ada = { Authorization: `Basic ${btoa('ada:lovelace')}` }
const json = { 'Content-Type': 'application/json' }
const merge = { 'Content-Type': 'application/merge-patch+json' }
const foreign = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }

/** The requests to every server: some must be refused. */
const ASKS: readonly Ask[] = [
  ['GET', '/guarded/secret'],
  ['PUT', '/guarded/items/1', json, '{}'],
  ['POST', '/guarded/items', { ...json, ...ada }, '{"a":1}'],
  ['GET', '/guarded/items/1'],
  ['PATCH', '/guarded/items/1', { ...merge, ...ada }, '{"a":2}'],
  ['POST', '/guarded/items', { ...json, ...ada, ...foreign }, '{}'],
  ['DELETE', '/guarded/items/1', ada],
  ['GET', '/guarded/items/1'],
  ['POST', '/guarded/jobs', { ...json, ...ada }, '{}'],
  ['PUT', '/guarded/docs/a', { 'Content-Type': 'text/html', ...ada }, '<script>'],
  ['GET', '/guarded/docs/a', { ...ada, Range: 'bytes=0-0' }],
  ['GET', '/guarded/one', ada],
  ['POST', '/open/notes', json, '{"a":1}'],
  ['GET', '/open/notes'],
  ['PUT', '/open/a', { ...json, 'If-Match': '"x"' }, '{}'],
  ['GET', '/auth/x'],
  ['GET', '/auth/x', ada],
  ['GET', '/range/x'],
  ['GET', '/conditional/x', { 'If-None-Match': '"1"' }],
  ['PATCH', '/patch/x', merge, '{"a":2}'],
  ['POST', '/body/x', json, 'nonsense'],
  ['OPTIONS', '/preflight/x', { Origin: 'https://a.example', 'Access-Control-Request-Method': 'PUT' }],
  ['GET', '/https/x', { 'X-Forwarded-For': '203.0.113.1' }],
  ['POST', '/override/x', { 'X-HTTP-Method-Override': 'PUT' }],
]

async function transcribe(): Promise<readonly string[]> {
  const lines: string[] = []
  for (const asked of ASKS) lines.push(`${asked[0]} ${asked[1]} ${await ask(asked)}`)
  return lines
}

/** Options of options, which the page does not list one by one. */
const NESTED = ['default', 'max', 'describe', 'type', 'render', 'key', 'claim', 'freshFor', 'staleFor', 'cooldown']
const page = readFileSync(new URL('../../docs/options.md', import.meta.url), 'utf8')
/** With this name there, Node cannot make a request, whatever answers it. */
const OF_NODE = 'signal'
const LISTED = [...page.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!)
const NAMES = [...new Set([...LISTED, ...NESTED])].filter((name) => name !== OF_NODE)

/** A value that an option of this name takes, and that changes much; a function for all others. */
const VALUES: Readonly<Record<string, unknown>> = {
  ...{
    requireAuth: 'none',
    deletion: 'soft',
    deleteResponse: 'representation',
    putResponse: 'representation',
    create: 'accepted',
  },
  ...{ ids: 'string', preconditions: 'required', https: 'optional', mode: 'optional', unexpectedErrors: 'forward' },
  ...{ cacheControl: 'public, max-age=99', postCacheControl: 'public, max-age=99', resourcePolicy: 'cross-origin' },
  ...{ reply: 'minimal', entityTag: '"polluted"', contentType: 'text/html', mountPath: '/x', prefix: '/x', path: '/x' },
  ...{
    realm: 'polluted',
    detail: 'polluted',
    headers: { 'X-Polluted': '1' },
    extensions: { polluted: 1 },
    status: 426,
  },
  ...{
    methods: ['GET'],
    memberMethods: ['GET'],
    types: ['text/plain'],
    storedHeaders: ['Content-Language'],
    allowInline: ['*/*'],
  },
  ...{ raw: true, required: true, methodOverride: true, credentials: true, timing: true, privateNetwork: true },
  ...{ rejectOrigin: true, fallthrough: false, clientIds: false, strictMount: true, dateIsStrong: true, expose: true },
  ...{ maxSize: 0, retention: 0, lastModified: 0, bodySize: 1, depth: 1, maxTargetLength: 1, maxTokenAge: 1, max: 1 },
  ...{
    default: 1,
    cacheLifetime: 60_000,
    cacheSize: 1,
    window: 1,
    failures: 1,
    nonceLifetime: 1,
    maxAge: 1,
    algorithms: ['MD5'],
    form: 'token',
  },
  ...{
    principalIsAmbient: false,
    challenge: 'Polluted',
    errorsList: [],
    fields: ['X-Polluted', '1'],
    files: {},
    textProperty: 'a',
  },
  ...{
    trustProxy: 'loopback',
    allowedHosts: ['polluted'],
    contentCodings: ['gzip'],
    limits: {},
    operations: {},
    pageSize: {},
  },
}

describe('Object.prototype with the name of an option on it', () => {
  it.each(['before the server is made', 'while it answers'] as const)('changes nothing, %s', async (when) => {
    await run(['construct'])
    const expected = await transcribe()
    expect(expected[0]).toContain('|WWW-Authenticate|')
    for (const name of NAMES) {
      const value = VALUES[name] ?? 'a function'
      const before: readonly Step[] = when === 'while it answers' ? ['construct', 'pollute'] : ['pollute', 'construct']
      expect([name, await run(before, name, value)]).toEqual([name, ''])
      const lines = await transcribe()
      await run(['clean'], name)
      expect([name, ...lines]).toEqual([name, ...expected])
    }
  })

  it('does not show what was softly deleted, where it has the name of an option of a read', async () => {
    await run(['construct'])
    expect(await ask(['POST', '/soft/items', json, '{"secret":1}'])).toMatch(/^201/)
    expect(await ask(['DELETE', '/soft/items/1'])).toMatch(/^204/)
    await run(['pollute'], 'hidden', true)
    const lines = [await ask(['GET', '/soft/items/1']), await ask(['GET', '/soft/items'])]
    await run(['clean'], 'hidden')
    expect(lines[0]).toMatch(/^410/)
    expect(lines.join()).not.toContain('secret')
  })
})
