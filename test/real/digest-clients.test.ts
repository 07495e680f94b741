import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type DigestOptions, digest } from '../../src/auth-schemes/digest.ts'
import type { DigestAlgorithm } from '../../src/auth-schemes/digest-response.ts'
import { type GuardedServer, serveGuarded } from '../auth-schemes/guarded-server.ts'
import { findProgram, run } from './programs.ts'

const accounts = { ada: 'se:cr"et', jürgen: 'pässwört' }
const USERS = Object.entries(accounts)
const BOTH: readonly DigestAlgorithm[] = ['SHA-256', 'MD5']

const [curl, wget, browser] = ['curl', 'wget', 'chromium'].map((name) => findProgram(name))
const python = await findPythonWithRequests()

async function findPythonWithRequests(): Promise<string | undefined> {
  for (const program of [findProgram('python3'), '/usr/bin/python3']) {
    if (program !== undefined && (await run(program, ['-c', 'import requests'])).code === 0) return program
  }
  if (process.env['REQUIRE_REAL_PARTS'] === '1') throw new Error('The tests need python3 with requests.')
  return undefined
}

async function serve(options: Partial<DigestOptions>): Promise<GuardedServer> {
  return serveGuarded({ schemes: [digest({ accounts, ...options })] })
}

/** Serves, asks, and sends again what was sent with success: the answers must not differ by the client. */
async function withServer(
  options: Partial<DigestOptions>,
  ask: (server: GuardedServer) => Promise<void>,
): Promise<void> {
  const server = await serve(options)
  const sent: { readonly path: string; readonly method: string; readonly authorization: string }[] = []
  server.server.on('request', ({ url = '', method = '', headers }, res) => {
    res.on('finish', () => {
      if (res.statusCode === 200) sent.push({ path: url, method, authorization: String(headers.authorization) })
    })
  })
  try {
    await ask(server)
    const { path, method, authorization } = sent.at(-1)!
    const Authorization = authorization
    expect((await server.send({ path, method, headers: { Authorization } })).status).toBe(401)
    expect((await server.send({ path: `${path}0`, method, headers: { Authorization } })).status).toBe(401)
    expect((await server.send({ path, method: 'DELETE', headers: { Authorization } })).status).toBe(401)
  } finally {
    await server.close()
  }
}

describe.runIf(curl)('digest, with curl', () => {
  describe.each<{ readonly algorithms: readonly DigestAlgorithm[] }>([
    { algorithms: ['SHA-256'] },
    { algorithms: BOTH },
    { algorithms: ['MD5'] },
  ])('and $algorithms', (options) => {
    it.each(USERS)('lets %s in, and no replay (threat 100)', async (user, password) => {
      await withServer(options, async ({ origin }) => {
        const credentials = ['-s', '--digest', '-u', `${user}:${password}`]
        const { stdout } = await run(curl!, [...credentials, `${origin}/a%20b?c=d,e&f=%22`, `${origin}/g`])
        expect(stdout.match(new RegExp(`"id":"${user}"`, 'g'))).toHaveLength(2)
        const put = await run(curl!, [...credentials, '-X', 'PUT', '--data-binary', 'x'.repeat(3000), `${origin}/h`])
        expect(put.stdout).toContain(`"id":"${user}"`)
        const head = await run(curl!, [...credentials, '-I', `${origin}/i`])
        expect(head.stdout).toMatch(/HTTP\/1.1 200[\s\S]*Authentication-Info: rspauth=/)
      })
    })

    it('refuses a wrong password', async () => {
      const server = await serve(options)
      const { stdout } = await run(curl!, ['-s', '-i', '--digest', '-u', 'ada:wrong', server.origin])
      expect(stdout).not.toMatch(/HTTP\/1.1 200/)
      await server.close()
    })
  })

  it('starts again by itself with a nonce that is stale (RFC 7616 §3.3, row G3)', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const server = await serve({ nonceLifetime: 10_000 })
    let answers = 0
    server.server.on('request', (_, res) => {
      res.on('finish', () => {
        // The first nonce is too old by the time it is used.
        if (++answers === 1) vi.setSystemTime(Date.now() + 10_000)
      })
    })
    try {
      const { stdout } = await run(curl!, ['-s', '--digest', '-u', `ada:${accounts.ada}`, '-i', server.origin])
      expect(stdout.match(/^HTTP\/1.1 \d+|stale=true/gm)).toEqual([
        ...['HTTP/1.1 401', 'HTTP/1.1 401', 'stale=true', 'HTTP/1.1 200'],
      ])
    } finally {
      vi.useRealTimers()
      await server.close()
    }
  })
})

describe.runIf(wget)('digest, with wget', () => {
  it.each(USERS)('lets %s in where MD5 is offered, and no replay (threat 100)', async (user, password) => {
    await withServer({ algorithms: BOTH }, async ({ origin }) => {
      const args = ['-q', '-O', '-', `--user=${user}`, `--password=${password}`, `${origin}/a?b=c`, `${origin}/d`]
      const { stdout } = await run(wget!, args)
      expect(stdout.match(new RegExp(`"id":"${user}"`, 'g'))).toHaveLength(2)
    })
  })
})

describe.runIf(python)('digest, with Python requests', () => {
  const script = `
import sys, requests
session = requests.Session()
session.trust_env = False
session.auth = requests.auth.HTTPDigestAuth(sys.argv[1], sys.argv[2])
for i in range(5):
    print(session.put(sys.argv[3] + '/a?b=c,d&e=' + str(i), data='x').text)
`

  it.each(
    USERS.flatMap(([user, password]) => [BOTH, BOTH.slice(0, 1)].map((names) => [user, names, password] as const)),
  )(
    'lets %s in on every request of a session with %j, and no replay (threat 100)',
    async (user, algorithms, password) => {
      await withServer({ algorithms }, async ({ origin }) => {
        const { stdout } = await run(python!, ['-c', script, user, password, origin])
        expect(stdout.match(new RegExp(`"id":"${user}"`, 'g'))).toHaveLength(5)
      })
    },
  )
})

describe.runIf(browser)('digest, with Chromium', () => {
  let running: Browser
  beforeAll(async () => {
    running = await chromium.launch({ executablePath: browser! })
  })
  afterAll(async () => {
    await running?.close()
  })

  it.each([[BOTH], [BOTH.slice(0, 1)]])(
    'lets a page and its scripts in with %j, twenty at once',
    async (algorithms) => {
      await withServer({ algorithms }, async ({ origin }) => {
        const context = await running.newContext({ httpCredentials: { username: 'ada', password: accounts.ada } })
        const page = await context.newPage()
        const response = await page.goto(`${origin}/page?x=1`)
        expect(response?.status()).toBe(200)
        const statuses = await page.evaluate(`Promise.all(Array.from({ length: 20 }, (_, i) =>
        fetch('/item/' + i, { method: i % 2 ? 'PUT' : 'GET' }).then(({ status }) => status)))`)
        expect(new Set(statuses as number[])).toEqual(new Set([200]))
        await context.close()
      })
    },
  )
})
