// Load for a long time: does anything grow with uptime? node soak.mjs --minutes 60 [--store memory] [--rate 1500]
import { spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import { Agent, request } from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureData, ORIGIN } from './lib/data.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const { values: opt } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '1500' },
    store: { type: 'string', default: 'memory' },
    connections: { type: 'string', default: '16' },
  },
})
const { files, keys } = ensureData(path.join(here, 'data'))
const { HS256 } = JSON.parse(fs.readFileSync(keys, 'utf8'))
const uploads = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'soak-'))
const flags = ['--expose-gc', '--import', path.join(here, 'lib/report-memory.mjs')]
const server = spawn(process.execPath, [...flags, path.join(here, 'servers/project.mjs')], {
  env: {
    ...process.env,
    NODE_ENV: 'production',
    PROJECT_DIR: path.join(here, '..'),
    BENCH_STORE: opt.store,
    BENCH_FILES_IN: 'store',
    BENCH_USERS: '1000',
    BENCH_DOCS: '100',
    BENCH_FILES: files,
    BENCH_UPLOADS: uploads,
    BENCH_KEYS: keys,
  },
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
})
const port = await new Promise((resolve) => {
  server.stdout.on('data', (text) => {
    const ready = /ready (\d+)/.exec(text)
    if (ready) resolve(Number(ready[1]))
  })
})

const agent = new Agent({ keepAlive: true, maxSockets: Number(opt.connections) })
const JSON_TYPE = { 'content-type': 'application/json' }

async function send(method, target, headers = {}, body = undefined) {
  const outgoing = request({ agent, port, host: '127.0.0.1', method, path: target, headers })
  outgoing.end(body)
  const [incoming] = await once(outgoing, 'response')
  let length = 0
  for await (const chunk of incoming) length += chunk.length
  return { status: incoming.statusCode, headers: incoming.headers, length }
}

function expect(answer, ...statuses) {
  if (!statuses.includes(answer.status)) throw new Error(`status ${answer.status}`)
  return answer
}

/** A token that was never seen before. */
function sign() {
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: 'https://issuer.example.test', aud: 'bench', sub: randomUUID(), iat: now, exp: now + 600 }
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', Buffer.from(HS256.secret, 'base64url')).update(text).digest('base64url')}`
}

const pick = (count) => 1 + Math.floor(Math.random() * count)
const tasks = [
  async () => expect(await send('GET', `/users/${pick(1000)}`), 200),
  async () => {
    const target = `/users/${pick(1000)}`
    const { etag } = expect(await send('GET', target), 200).headers
    expect(await send('GET', target, { 'if-none-match': etag }), 304, 200)
    const body = JSON.stringify({ name: `User ${pick(1e9)}`, email: 'user@mail.example.test' })
    expect(await send('PUT', target, { ...JSON_TYPE, 'if-match': etag }, body), 204, 200, 412)
  },
  async () => {
    const body = JSON.stringify({ name: `User ${pick(1e9)}`, email: 'user@mail.example.test' })
    const { location } = expect(await send('POST', '/users', JSON_TYPE, body), 201).headers
    expect(await send('GET', location), 200)
    expect(await send('DELETE', location), 204, 200)
    expect(await send('GET', location), 404, 410)
  },
  async () => {
    const patch = { 'content-type': 'application/merge-patch+json' }
    expect(await send('PATCH', `/docs/${pick(99)}`, patch, JSON.stringify({ touched: pick(1e9) })), 200, 204)
  },
  async () => {
    const first = pick(16 * 1024 * 1024 - 65_536)
    expect(await send('GET', '/files/big.bin', { range: `bytes=${first}-${first + 65_535}` }), 206)
  },
  async () => {
    const headers = { origin: ORIGIN, 'access-control-request-method': 'PUT' }
    expect(await send('OPTIONS', `/users/${pick(1000)}`, headers), 204)
  },
  async () => expect(await send('GET', '/users?limit=50'), 200),
  async () => expect(await send('GET', `/hs256/users/${pick(1000)}`, { authorization: `Bearer ${sign()}` }), 200),
  async () => expect(await send('GET', `/nowhere/${randomUUID()}`), 404),
  async () => expect(await send('POST', '/users', JSON_TYPE, '{"name":'), 400),
  async () => {
    const boundary = randomUUID()
    const type = { 'content-type': `multipart/form-data; boundary=${boundary}` }
    const file = 'Content-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: application/octet-stream'
    const body = `--${boundary}\r\n${file}\r\n\r\n${'x'.repeat(10_000)}\r\n--${boundary}--\r\n`
    expect(await send('POST', '/forms', type, body), 201)
  },
]

let done = 0
let failed = 0
const end = performance.now() + Number(opt.minutes) * 60_000
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function work(index) {
  const gap = (1000 * Number(opt.connections)) / Number(opt.rate)
  for (let i = index; performance.now() < end; i++) {
    const next = performance.now() + gap
    try {
      await tasks[i % tasks.length]()
    } catch (error) {
      if (failed++ < 5) console.log(error.message)
    }
    done++
    await pause(Math.max(0, next - performance.now()))
  }
}

const mb = (bytes) => (bytes / 1e6).toFixed(1).padStart(8)
console.log('minute   tasks  failed     rss    heap external')
async function report() {
  server.send('report')
  const [{ rss, heapUsed, external }] = await once(server, 'message')
  const minute = Number(opt.minutes) - (end - performance.now()) / 60_000
  const counts = `${minute.toFixed(1).padStart(6)}${String(done).padStart(8)}${String(failed).padStart(8)}`
  console.log(`${counts}${mb(rss)}${mb(heapUsed)}${mb(external)}`)
}
const interval = setInterval(report, Math.max(1000, (Number(opt.minutes) * 60_000) / 20))
await Promise.all(Array.from({ length: Number(opt.connections) }, (_, index) => work(index)))
clearInterval(interval)
await report()
agent.destroy()
server.kill()
fs.rmSync(uploads, { recursive: true, force: true })
