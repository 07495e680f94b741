// What `query` and `scope` add to POST, and `scope` to GET of an item, in processor time of the process that serves: the same
// requests, in short windows by turns, in a random order. node bench/indexed-cost.mjs memory|sqlite|postgres://... [windows] [requests of each]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { collection, createResourceService } from '../dist/index.js'
import { openItemStore } from './stores.mjs'

const [kind = 'memory', windows = '30', requests = '320', only] = process.argv.slice(2)
const properties = {
  city: 'string',
  done: 'boolean',
  dueAt: 'date-time',
  owner: 'string',
  priority: 'number',
  status: 'string',
}
const three = { city: 'string', done: 'boolean', priority: 'number' }
const scope = () => ({ owner: 'o1' })
const { store } = await openItemStore(kind)
const service = createResourceService(store, {
  resources: {
    '/plain': collection(),
    '/three': collection({ query: three }),
    '/six': collection({ query: properties }),
    '/scope': collection({ scope }),
    '/design': collection({ query: { status: 'string', dueAt: 'date-time' }, scope }),
    '/both': collection({ query: properties, scope }),
  },
})

/** Sends requests over 16 connections when it is asked to: a kind and a path, then how many. */
const CLIENT = `
import { Agent, request } from 'node:http'
const port = process.argv[1]
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
let i = 0
function send(method, path) {
  i++
  return new Promise((resolve, reject) => {
    const headers = method === 'POST' ? { 'Content-Type': 'application/json' } : {}
    const req = request({ port, path: method === 'GET' ? path + '/' + (1 + (i * 7919) % 1000) : path, method, agent, headers }, (res) => {
      res.resume().on('end', () => (res.statusCode < 300 ? resolve() : reject(new Error(path + ' ' + res.statusCode))))
    })
    req.on('error', reject).end(method === 'GET' ? undefined : JSON.stringify({ city: 'city ' + (i % 97), done: i % 2 === 0,
      owner: 'o1', dueAt: new Date(i * 1e7).toISOString(), priority: i % 5, status: 's' + (i % 5) }))
  })
}
process.on('message', async ([method, path, count]) => {
  for (let sent = 0; sent < count; sent += 16) await Promise.all(Array.from({ length: 16 }, () => send(method, path)))
  process.send('done')
})
process.send('ready')
`

const server = createServer(service).listen(0)
await once(server, 'listening')
const client = spawn(process.execPath, ['--input-type=module', '-e', CLIENT, String(server.address().port)], {
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
})
client.once('exit', () => process.exit(1))
await once(client, 'message')

async function measure(method, path, count) {
  const before = process.cpuUsage()
  client.send([method, path, count])
  await once(client, 'message')
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

const variants = [
  ...['/plain', '/three', '/six', '/scope', '/design', '/both'].map((path) => ['POST', path]),
  ...['/plain', '/both'].map((path) => ['GET', path]),
]
  .filter((variant) => only === undefined || only.split(',').includes(variant.join(' ')))
  .map(([method, path]) => ({ method, path, times: [] }))
for (const path of new Set(variants.map(({ path }) => path))) await measure('POST', path, 1600)
for (const { method, path } of variants) await measure(method, path, 1600)
// In another order each time: garbage collection comes at an even pace, and would fall on the same ones every time.
for (let window = 0; window < Number(windows); window++) {
  const order = variants.map((variant) => [Math.random(), variant]).sort(([a], [b]) => a - b)
  for (const [, { method, path, times }] of order) times.push(await measure(method, path, Number(requests)))
}
const summary = (times) => {
  const sorted = times.toSorted((a, b) => a - b)
  const fastest = sorted.slice(0, Math.ceil(sorted.length / 10))
  return [sorted[sorted.length >> 1], fastest.reduce((sum, time) => sum + time, 0) / fastest.length]
}
console.log(`${kind.split(':')[0]}: processor time of a request, median and fastest tenth; the ratio to /plain`)
for (const { method, path, times } of variants) {
  const own = summary(times)
  const base = summary(variants.find((one) => one.method === method).times)
  const text = own.map((time, at) => `${time.toFixed(1).padStart(7)} µs ${(time / base[at]).toFixed(2)}`)
  console.log(`${method.padEnd(4)} ${path.padEnd(8)} ${text.join('   ')}`)
}
await store.close?.()
process.exit()
