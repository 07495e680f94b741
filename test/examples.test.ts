import { execFile } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
// @ts-expect-error the demo is JavaScript, as its readers will write it
import { putPageInFront } from '../examples/demo/front.js'
// @ts-expect-error as above
import { fileStore } from '../examples/file-store.js'
import { DEMOS, type Program, runProgram } from './support/run-program.ts'

const run = promisify(execFile)
const running: Program[] = []
afterEach(async () => {
  for (const program of running.splice(0)) await program.stop('SIGKILL')
})

async function start(file: string, env: Record<string, string> = {}): Promise<{ base: string; program: Program }> {
  const program = runProgram(`examples/${file}`, { PORT: '0', ...env })
  running.push(program)
  const [, base] = await program.waitFor(/listening on (http:\S+)/)
  return { base: base!, program }
}

const demo = { DEMO_SECRET: 'secret', DEMO_USER: 'demo', DEMO_PASSWORD: 'password' }
const account = { Authorization: `Basic ${btoa('demo:password')}` }

describe.each(DEMOS)('examples/%s', (file) => {
  it('serves the demo at the root and under /api, and stops cleanly on SIGTERM', async () => {
    const { base, program } = await start(file, demo)
    const created = await fetch(`${base}/api/users`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'Ada', email: 'ada@example.org' }),
    })
    expect(created.status).toBe(201)
    expect(created.headers.get('location')).toBe('/api/users/1')
    expect(await (await fetch(`${base}/users/1`)).json()).toEqual({ id: 1, name: 'Ada', email: 'ada@example.org' })
    expect((await fetch(`${base}/users/1`, { method: 'DELETE' })).status).toBe(401)
    expect((await fetch(`${base}/users/1`, { method: 'DELETE', headers: account })).status).toBe(204)
    expect((await fetch(`${base}/users/1`)).status).toBe(410)
    const range = await fetch(`${base}/file.bin`, { headers: { Range: 'bytes=250-252' } })
    expect([...new Uint8Array(await range.arrayBuffer())]).toEqual([250, 0, 1])
    expect(await program.stop()).toBe(0)
  })
})

describe('examples/file-store.js', () => {
  it('serves a folder that is given relative to the working directory, or with a slash at its end', async () => {
    for (const folder of ['examples', './examples', `${process.cwd()}/examples/`, 'test/../examples']) {
      const store = fileStore(folder)
      expect(await store.read('/koa.js'), folder).toMatchObject({ path: '/koa.js' })
      expect(await store.read('/../package.json'), folder).toBeUndefined()
    }
  })
})

describe('the page of the demo', () => {
  it('answers what it is asked for while the server closes: a fault would end all that is under way', async () => {
    const server = createServer()
    putPageInFront(server, ['https://app.example'])
    server.prependListener('request', () => void server.close())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const closed = once(server, 'close')
    const answer = await fetch(`http://127.0.0.1:${port}/demo/preflights`, { headers: { Connection: 'close' } })
    expect([answer.status, await answer.json()]).toMatchObject([200, [{ status: 0 }, { status: 0 }]])
    await closed
  })
})

describe.each(DEMOS)('the first lines of examples/%s', (file) => {
  it('work as they are printed, and are those of the README (issue "Package")', async () => {
    const { base, program } = await start(file, demo)
    await program.waitFor(/Try it:\n(?:curl .*\n){3}/)
    const lines = program.output().match(/^curl .*$/gm)!
    const statuses: string[] = []
    for (const line of lines) {
      const { stdout } = await run('sh', ['-c', line])
      statuses.push(/^HTTP\/1\.1 (\d+)/.exec(stdout)![1]!)
    }
    expect(statuses).toEqual(['201', '200', '200'])
    const [first] = readFileSync('README.md', 'utf8').match(/(?:^curl .*\n){3}/m)!
    expect(first!.trimEnd().split('\n')).toEqual(lines.map((line) => line.replace(base, 'http://127.0.0.1:8080')))
  })
})

describe.each(DEMOS)('the page of examples/%s', (file) => {
  it('is what browsers get at /, and programs get the JSON home (issue 21)', async () => {
    const { base, program } = await start(file, demo)
    await program.waitFor(/Or open \S+ in a browser/)
    expect(program.output()).toContain(`Or open ${base}/ in a browser.`)
    const ask = (headers: Record<string, string>, method = 'GET') => fetch(`${base}/`, { method, headers })
    const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    const page = await ask(browser)
    const { headers } = page
    expect([page.status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const html = await page.text()
    // Nothing from elsewhere: neither a URL to load from, nor a script that is not in the policy by its hash.
    expect(html.replace(/http:\/\/www\.w3\.org\/2000\/svg/g, '')).not.toMatch(/(?:src|href)="?(?:https?:)?\/\//)
    const policy = headers.get('content-security-policy')!
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; /)
    expect(policy).not.toContain('unsafe')
    for (const [, tag, content] of html.matchAll(/<(script|style)[^>]*>([\s\S]*?)<\/\1>/g)) {
      expect(policy).toContain(`${tag}-src 'sha256-${createHash('sha256').update(content!).digest('base64')}'`)
    }
    const head = await ask(browser, 'HEAD')
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(Buffer.byteLength(html))])
    expect((await ask({ ...browser, 'If-None-Match': headers.get('etag')! })).status).toBe(304)
    for (const fields of [{}, { Accept: '*/*' }, { Accept: 'application/json' }, { Accept: 'text/html;q=0.5, */*' }]) {
      const home = await ask(fields)
      expect(home.headers.get('content-type')).toBe('application/json')
      expect(((await home.json()) as { title: string }).title).toBe('http-resource-service demo')
      expect(home.headers.get('vary')).toMatch(/\bAccept\b/)
    }
    // The reason for an answer, for the requests of the page alone.
    const missing = await fetch(`${base}/api/users/9`, { headers: { 'Demo-Reason': '1' } })
    expect([missing.status, missing.headers.get('demo-reason')]).toEqual([404, expect.stringMatching(/\w/)])
    expect((await fetch(`${base}/api/users/9`)).headers.get('demo-reason')).toBeNull()
    expect(await program.stop()).toBe(0)
  })
})

describe('examples/demo', () => {
  const plain = 'plain-http.js'
  const inAnHour = Math.floor(Date.now() / 1000) + 3600
  const admin = { iss: 'demo', aud: 'demo', sub: 'ann', role: 'admin', exp: inAnHour }

  /** HS256 over the bytes of the secret, as any client may sign: RFC 7515 §A.1. */
  function sign(secret: string, claims: object): Record<string, string> {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const input = `${encode({ alg: 'HS256' })}.${encode(claims)}`
    const signature = createHmac('sha256', Buffer.from(secret)).update(input).digest('base64url')
    return { Authorization: `Bearer ${input}.${signature}` }
  }

  it.each(['s', 'žluťoučký kůň', 'of exactly thirty-two characters', 'k'.repeat(100)])(
    'takes tokens that are signed with the bytes of %j, have an end and come from an admin',
    async (secret) => {
      const { base } = await start(plain, { ...demo, DEMO_SECRET: secret })
      const { exp: _, ...endless } = admin
      const cases: [number, Record<string, string>][] = [
        [200, sign(secret, admin)],
        [403, sign(secret, { ...admin, role: 'member' })],
        [401, sign(secret, endless)],
        [401, sign(secret, { ...admin, exp: inAnHour - 7200 })],
        [401, sign(secret, { ...admin, aud: 'other' })],
        [401, sign(`${secret}x`, admin)],
        [200, account],
        [401, {}],
      ]
      for (const [status, headers] of cases) {
        expect((await fetch(`${base}/articles?deleted=true`, { headers })).status).toBe(status)
      }
    },
  )

  it('keeps what was acknowledged over a restart: STORE=sqlite:FILE', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'demo-'))
    const env = { ...demo, STORE: `sqlite:${join(folder, 'demo.db')}` }
    try {
      const first = await start(plain, env)
      const put = { method: 'PUT', headers: { 'Content-Type': 'text/plain' }, body: 'kept' }
      expect((await fetch(`${first.base}/docs/a`, put)).status).toBe(201)
      const tag = (await fetch(`${first.base}/docs/a`)).headers.get('etag')
      expect(await first.program.stop()).toBe(0)
      const second = await start(plain, env)
      const kept = await fetch(`${second.base}/docs/a`)
      expect([await kept.text(), kept.headers.get('etag')]).toEqual(['kept', tag])
      expect(await second.program.stop()).toBe(0)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('takes empty variables for none, so that an empty secret is not a key', async () => {
    const { base, program } = await start(plain, { DEMO_SECRET: '', DEMO_PASSWORD: '', STORE: '', CORS_ORIGINS: '' })
    expect(program.output()).toMatch(/user demo, password \S+\ntoken of an admin, for a day: \S+\n/)
    expect((await fetch(`${base}/articles?deleted=true`, { headers: sign('', admin) })).status).toBe(401)
  })

  it('allows the origins of CORS_ORIGINS and no others', async () => {
    const { base } = await start(plain, { CORS_ORIGINS: 'https://a.example, https://b.example' })
    const allowed = await Promise.all(
      ['https://a.example', 'https://b.example', 'http://localhost:3000'].map(async (origin) => {
        const { headers } = await fetch(`${base}/users`, { headers: { Origin: origin } })
        return headers.get('access-control-allow-origin')
      }),
    )
    expect(allowed).toEqual(['https://a.example', 'https://b.example', null])
  })
})

describe('examples/nest.js', () => {
  it('serves the service below /api of a NestJS application', async () => {
    const { base } = await start('nest.js')
    const created = await fetch(`${base}/api/users`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"name":"Ada"}',
    })
    expect(created.status).toBe(201)
    expect(await created.json()).toEqual({ id: 1, name: 'Ada' })
    expect((await fetch(`${base}/other`)).status).toBe(404)
  })
})

describe('examples/middleware.js', () => {
  it('loses no update of two with the same If-Match whose content arrives after both conditions (RFC 9110 §13.1.1)', async () => {
    const { base } = await start('middleware.js')
    const headers = { 'Content-Type': 'application/json', 'If-Match': '"1"' }
    const puts = [
      request(`${base}/settings`, { method: 'PUT', headers }),
      request(`${base}/settings`, { method: 'PUT', headers }),
    ]
    const responses = puts.map(async (put) => ((await once(put, 'response'))[0] as IncomingMessage).statusCode)
    for (const put of puts) put.write('{"theme":')
    await fetch(`${base}/settings`) // both have arrived
    await sleep(100)
    for (const put of puts) put.end('"dark"}')
    expect((await Promise.all(responses)).sort()).toEqual([204, 412])
  })

  it('uses each middleware in an application that has routes of its own', async () => {
    const { base } = await start('middleware.js')
    const settings = await fetch(`${base}/settings`, { headers: { Origin: 'https://app.example' } })
    expect(settings.headers.get('etag')).toBe('"1"')
    expect(settings.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect((await fetch(`${base}/settings`, { headers: { 'If-None-Match': '"1"' } })).status).toBe(304)
    const json = { 'Content-Type': 'application/json' }
    expect((await fetch(`${base}/settings`, { method: 'PUT', headers: json, body: '{}' })).status).toBe(428)
    const put = await fetch(`${base}/settings`, {
      method: 'PUT',
      headers: { ...json, 'If-Match': '"1"' },
      body: '{"theme":"dark"}',
    })
    expect([put.status, put.headers.get('etag')]).toEqual([204, '"2"'])
    const patched = await fetch(`${base}/settings`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/merge-patch+json',
        'X-HTTP-Method-Override': 'PATCH',
        'If-Match': '"2"',
      },
      body: '{"size":14}',
    })
    expect(await patched.json()).toEqual({ theme: 'dark', size: 14 })
    const film = await fetch(`${base}/film`, { headers: { Range: 'bytes=0-3' } })
    expect([film.status, await film.text()]).toEqual([206, 'film'])
    const form = new FormData()
    form.append('title', 'Two photos')
    form.append('a', new Blob(['x'.repeat(1000)]), 'a.jpg')
    form.append('b', new Blob(['y'.repeat(200_000)]), 'b.jpg')
    const photos = await fetch(`${base}/photos`, { method: 'POST', body: form })
    expect(await photos.json()).toEqual({ a: 1000, b: 200_000 })
    // Empty content: nothing fails, and nothing is erased (issue 17, point 10).
    const condition = { 'If-Match': '"3"' }
    for (const headers of [condition, { ...json, ...condition }]) {
      expect((await fetch(`${base}/settings`, { method: 'PUT', headers })).status).toBe(400)
      expect(await (await fetch(`${base}/settings`)).json()).toEqual({ theme: 'dark', size: 14 })
    }
    expect((await fetch(`${base}/photos`, { method: 'POST' })).status).toBe(201)
    const noParts = { 'Content-Type': 'multipart/form-data; boundary=b' }
    expect((await fetch(`${base}/photos`, { method: 'POST', headers: noParts })).status).toBe(400)
    expect((await fetch(`${base}/me`)).status).toBe(401)
    const me = await fetch(`${base}/me`, { headers: { Authorization: `Basic ${btoa('ada:lovelace')}` } })
    expect(await me.text()).toBe('ada')
  })
})

describe('examples/optimistic-concurrency.js', () => {
  it('shows 428 and 412, and ten edits at once of which none is lost', async () => {
    const { program } = await start('optimistic-concurrency.js')
    await program.waitFor(/after ten edits: .*\n/)
    expect(program.output().split('\n').slice(1, 6)).toEqual([
      'create: 201',
      'without a condition: 428',
      'with the tag: 204',
      'with the same tag again: 412',
      'after ten edits: {"count":11}',
    ])
  })
})

describe('examples/jwt-issuer.js', () => {
  it('reads freely, and asks for a token to write', async () => {
    const { base } = await start('jwt-issuer.js')
    expect((await fetch(`${base}/notes`)).status).toBe(200)
    const refused = await fetch(`${base}/notes`, { method: 'POST', body: '{}' })
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="Resources"'])
  })
})

describe('examples/uploads.js', () => {
  it('accepts an upload, and tells when it has been worked on', async () => {
    const { base } = await start('uploads.js')
    expect(await (await fetch(base)).text()).toContain('upload.onprogress')
    const form = new FormData()
    form.append('title', 'Three lines')
    form.append('file', new Blob(['a\nb\nc']), 'lines.txt')
    const accepted = await fetch(`${base}/uploads`, { method: 'POST', body: form })
    expect([accepted.status, accepted.headers.get('location')]).toEqual([202, '/uploads/1'])
    let item: { state: string; lines?: number }
    for (;;) {
      item = (await (await fetch(`${base}/uploads/1`)).json()) as typeof item
      if (item.state !== 'pending') break
      await sleep(20)
    }
    expect(item).toMatchObject({ title: 'Three lines', state: 'ready', lines: 3 })
  })
})
