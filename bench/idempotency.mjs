// POST with an Idempotency-Key beside POST without one, on each store: node bench/idempotency.mjs, after `npm run build:js`.
// POSTGRES=postgres://... measures Postgres as well; its public schema is emptied.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Pool } from 'undici'
import { collection, createResourceService } from '../dist/index.js'
import { openItemStore } from './stores.mjs'

const ROUNDS = Number(process.env.ROUNDS ?? 15)
const REQUESTS = Number(process.env.REQUESTS ?? 400)
const CONNECTIONS = 16
const CONTENT = JSON.stringify({ name: 'Ann', email: 'ann@example.com', tags: ['a', 'b'], note: 'x'.repeat(100) })

const kinds = ['memory', 'sqlite', ...(process.env.POSTGRES ? [process.env.POSTGRES] : [])]
for (const kind of kinds) await measure(kind)

async function measure(kind) {
  const { store } = await openItemStore(kind)
  const service = createResourceService(store, { resources: { '/users': collection({ idempotency: 'optional' }) } })
  const server = createServer(service)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const pool = new Pool(`http://127.0.0.1:${server.address().port}`, { connections: CONNECTIONS })
  const times = { plain: [], keyed: [] }
  // In turns, so that both meet the same machine; the first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const way of round % 2 ? ['plain', 'keyed'] : ['keyed', 'plain']) {
      const start = performance.now()
      await sendAll(pool, way)
      if (round > 0) times[way].push(performance.now() - start)
    }
  }
  await pool.close()
  server.close()
  await service.close()
  const [plain, keyed] = [median(times.plain), median(times.keyed)]
  const rate = (time) => `${Math.round((REQUESTS / time) * 1000)}/s`
  console.log(
    `${kind.split(':')[0]}: ${rate(plain)} without a key, ${rate(keyed)} with one: ${(keyed / plain).toFixed(2)} times the time`,
  )
}

async function sendAll(pool, way) {
  let left = REQUESTS
  const send = async () => {
    while (left-- > 0) {
      const headers = { 'content-type': 'application/json' }
      if (way === 'keyed') headers['idempotency-key'] = randomUUID()
      const { statusCode, body } = await pool.request({ method: 'POST', path: '/users', headers, body: CONTENT })
      await body.dump()
      if (statusCode !== 201) throw new Error(`It was answered ${statusCode}.`)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1]
}

process.exit(0)
