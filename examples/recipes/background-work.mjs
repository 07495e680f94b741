// examples/recipes/background-work.mjs
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { collection, createResourceService } from 'http-resource-service'
import { postgresStore } from 'http-resource-service/stores/postgres'
import pg from 'pg'
import PgBoss from 'pg-boss'

const connectionString = process.env.DATABASE_URL
const QUEUE = 'operations'

const boss = new PgBoss({ connectionString })
boss.on('error', console.error)
await boss.start()
await boss.createQueue(QUEUE)

const pool = new pg.Pool({ connectionString })
const service = createResourceService(postgresStore({ pool }), {
  resources: {
    '/scans': collection({
      create: 'accepted', // POST: 202, and the item says "state": "pending"
      files: { document: { required: true } },
      async process(item) {
        const hash = createHash('sha256')
        const document = await item.file('document')
        for await (const chunk of document?.open() ?? []) hash.update(chunk)
        return { sha256: hash.digest('hex') } // joins the item, which then says "state": "ready"
      },
    }),
  },
  operations: {
    queue: {
      enqueue: (id, { delay }) => boss.send(QUEUE, { id }, { startAfter: new Date(Date.now() + delay) }),
    },
  },
})

// In this process, or in others with the same definitions: a worker needs no server.
await boss.work(QUEUE, { pollingIntervalSeconds: 0.5 }, async (/** @type {PgBoss.Job<{ id: string }>[]} */ jobs) => {
  for (const { data } of jobs) await service.runOperation(data.id)
})

const server = createServer(service)
server.listen(8080)

process.once('SIGTERM', async () => {
  const closed = new Promise((resolve) => server.close(resolve))
  await boss.stop({ timeout: 5000 }) // waits for the jobs that run
  await Promise.all([closed, service.close()])
  await pool.end()
  process.exit() // connections to a database that has fallen silent would keep the process alive
})
