// A server with accepted work in a SQLite file, to be killed at any moment.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { collection, createResourceService } from 'http-resource-service'
import { sqliteStore } from 'http-resource-service/stores/sqlite'
import Database from 'libsql'

const service = createResourceService(sqliteStore(new Database(process.env.DATABASE)), {
  resources: {
    '/jobs': collection({
      create: 'accepted',
      deletion: 'queued',
      async process({ signal }) {
        await sleep(20 + Math.random() * 60, undefined, { signal })
        return { run: randomUUID() }
      },
    }),
  },
})
const server = createServer(service).listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
