import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
}

/** Serves customers behind a proxy that loses some answers: the request has arrived and been done, the client hears nothing. */
async function startLossy(store: ResourceStore, share: number) {
  const service = createResourceService(store, {
    resources: { '/v1/customers': collection({ idempotency: 'optional' }) },
  })
  const server = createHttpServer(service)
  const port = await listen(server)
  const counts = { lost: 0, replayed: 0 }
  const proxy = createServer((client) => {
    const upstream = connect({ port, host: '127.0.0.1' })
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy())
    upstream.on('error', () => client.destroy()).on('end', () => client.end())
    client.on('data', (chunk) => upstream.write(chunk))
    upstream.on('data', (chunk) => {
      if (chunk.includes('Idempotency-Replayed: ?1')) counts.replayed++
      if (Math.random() >= share) return void client.write(chunk)
      counts.lost++
      client.resetAndDestroy()
      upstream.destroy()
    })
  })
  const proxyPort = await listen(proxy)
  closeAfterTest(() => {
    proxy.close()
    server.closeAllConnections()
    server.close()
    return service.close()
  })
  return { port: proxyPort, counts }
}

async function openSqlite(): Promise<ResourceStore> {
  const { default: Database } = (await import('libsql')) as unknown as { default: new (file: string) => SqliteHandle }
  return sqliteStore(new Database(':memory:'))
}

describe('stripe-node 23 with retries', () => {
  it.each([
    ['memoryStore', 1000, async () => memoryStore()],
    ['sqliteStore', 200, openSqlite],
  ] as const)(
    'creates exactly what it asked for on %s, %i customers, although a fifth of the answers is lost (issue 20)',
    async (_, count, open) => {
      const store = await open()
      const { port, counts } = await startLossy(store, 0.2)
      const stripe = new Stripe('sk_test_1', {
        host: '127.0.0.1',
        port,
        protocol: 'http',
        maxNetworkRetries: 30,
        telemetry: false,
      })
      const ids: unknown[] = []
      let next = 0
      const work = async (): Promise<void> => {
        for (let at = next++; at < count; at = next++) {
          const customer = await stripe.customers.create({ name: `customer ${at}` })
          expect(customer.name).toBe(`customer ${at}`)
          ids.push(customer.id)
        }
      }
      await Promise.all(Array.from({ length: 100 }, work))
      expect(counts.lost).toBeGreaterThan(count / 20)
      expect(counts.replayed).toBeGreaterThan(0)
      const { items } = await store.list('/v1/customers', { limit: count + 10 })
      expect(items).toHaveLength(count)
      expect(new Set(ids)).toEqual(new Set(items.map(({ path }) => Number(path.slice('/v1/customers/'.length)))))
      await store.close?.()
    },
    60_000,
  )
})
