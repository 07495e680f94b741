// examples/recipes/server.mjs
import { createServer } from 'node:http'
import { collection, createResourceService } from 'http-resource-service'
import { postgresStore } from 'http-resource-service/stores/postgres'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const store = postgresStore({ pool })
const service = createResourceService(store, {
  resources: { '/notes': collection() },
  trustProxy: (process.env.TRUST_PROXY ?? '').split(',').filter(Boolean),
})

let isStopping = false

/** Asks the store, which bounds its wait. A query of the pool alone would keep a connection that has fallen silent. */
async function canRead() {
  try {
    await store.read('/notes/1')
    return true
  } catch {
    return false
  }
}

const server = createServer(async (req, res) => {
  if (req.url === '/livez') return res.writeHead(200).end()
  if (req.url === '/readyz') {
    const isReady = !isStopping && (await canRead())
    return res.writeHead(isReady ? 200 : 503).end()
  }
  return service(req, res)
})
server.keepAliveTimeout = 65_000 // above that of the proxy: most keep an idle connection for 60 s
server.listen(Number(process.env.PORT ?? 8080))

process.once('SIGTERM', async () => {
  isStopping = true
  service.close() // each response ends its connection, so that a proxy keeps none that server.close() cuts off
  // Kubernetes sends requests until every node knows that the pod is going.
  await new Promise((resolve) => setTimeout(resolve, Number(process.env.DRAIN_DELAY ?? 5000)))
  const closed = new Promise((resolve) => server.close(resolve)) // no new connections
  setTimeout(() => server.closeAllConnections(), 15_000).unref() // clients that take longer are cut off
  await Promise.all([closed, service.close()])
  await store.close?.()
  await pool.end()
  process.exit() // connections to a database that has fallen silent would keep the process alive
})
