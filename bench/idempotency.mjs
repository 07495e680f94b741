// POST with an Idempotency-Key beside POST without one, on each store: node bench/idempotency.mjs, after `npm run build:js`.
// The measure is the processor time of the server's process, all threads. Windows with and without a key alternate within one
// run, and the figure is the median of the ratios of neighbours. Exits with 1 where a key costs more than BOUND.
// POSTGRES=postgres://... measures Postgres as well; its public schema is emptied. STORES=sqlite measures some stores only.
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { collection, createResourceService } from '../dist/index.js'
import { openItemStore } from './stores.mjs'

const BOUND = 1.6
const WINDOWS = Number(process.env.WINDOWS ?? 15)
const REQUESTS = Number(process.env.REQUESTS ?? 1500)
const CONNECTIONS = 16
const CONTENT = JSON.stringify({ name: 'Ann', email: 'ann@example.com', tags: ['a', 'b'], note: 'x'.repeat(100) })
const HEAD =
  'POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
  `Content-Length: ${CONTENT.length}\r\n`

if (process.argv[2] === undefined) await measureAll()
else await serve(process.argv[2])

async function measureAll() {
  const kinds = process.env.STORES?.split(',') ?? ['memory', 'sqlite']
  if (process.env.POSTGRES) kinds.push(process.env.POSTGRES)
  let isBroken = false
  for (const kind of kinds) {
    const { plain, keyed, ratio } = await measure(kind)
    const isWithin = ratio <= BOUND
    isBroken ||= !isWithin
    console.log(
      `${isWithin ? 'ok    ' : 'BROKEN'} ${kind.split(':')[0]}: ${plain.toFixed(0)} µs of processor time without a key, ` +
        `${keyed.toFixed(0)} µs with one: ${ratio.toFixed(2)} (at most ${BOUND})`,
    )
  }
  process.exit(isBroken ? 1 : 0)
}

/** The server, in a process of its own: it is asked for its processor time. */
async function serve(kind) {
  const { store } = await openItemStore(kind)
  const service = createResourceService(store, { resources: { '/users': collection({ idempotency: 'optional' }) } })
  const server = createServer(service).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send(user + system)
  })
  process.on('disconnect', () => process.exit())
  process.send(server.address().port)
}

async function measure(kind) {
  const child = fork(fileURLToPath(import.meta.url), [kind])
  const [port] = await once(child, 'message')
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(port)))
  const readClock = async () => {
    child.send('clock')
    return (await once(child, 'message'))[0]
  }
  const costs = { plain: [], keyed: [] }
  const ratios = []
  // The first windows warm up.
  for (let window = -3; window < WINDOWS; window++) {
    const cost = {}
    for (const way of window % 2 ? ['plain', 'keyed'] : ['keyed', 'plain']) {
      const start = await readClock()
      await sendAll(sockets, way)
      cost[way] = ((await readClock()) - start) / REQUESTS
    }
    if (window < 0) continue
    costs.plain.push(cost.plain)
    costs.keyed.push(cost.keyed)
    ratios.push(cost.keyed / cost.plain)
  }
  for (const socket of sockets) socket.destroy()
  child.disconnect()
  return { plain: median(costs.plain), keyed: median(costs.keyed), ratio: median(ratios) }
}

async function open(port) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

/**
 * One request at a time on each connection. The client does next to nothing, so that it is the server that is waited for in
 * both ways: a client that is busy saves a server the wake-up, which costs as much as a key.
 */
async function sendAll(sockets, way) {
  let left = REQUESTS
  const send = async (socket) => {
    while (left-- > 0) {
      socket.write(`${HEAD}${way === 'keyed' ? `Idempotency-Key: ${randomUUID()}\r\n` : ''}\r\n${CONTENT}`)
      const [chunk] = await once(socket, 'data')
      if (chunk.latin1Slice(9, 12) !== '201') throw new Error(`It was answered ${chunk}.`)
    }
  }
  await Promise.all(sockets.map(send))
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1]
}
