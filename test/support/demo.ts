import { createHmac } from 'node:crypto'
// @ts-expect-error the demo is JavaScript, as its readers will write it
import { createDemo, seed } from '../../examples/demo/service.js'
import type { ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type RunningHost, startHost } from './hosts.ts'

/** What the demo is started with; the same as a start from the command line with these in the environment. */
export const demoSettings = {
  secret: 'a secret of the tests, 32 bytes or more',
  user: 'ada',
  password: 'lovelace',
  origins: ['https://app.example'],
}

export interface RunningDemo extends RunningHost {
  readonly store: ResourceStore
}

/** Starts the demo of examples/demo, seeded, on one of the hosts of `hosts.ts`. */
export async function startDemo(
  host = 'plain',
  { prefix = '', store = memoryStore() }: { readonly prefix?: string; readonly store?: ResourceStore } = {},
): Promise<RunningDemo> {
  await seed(store)
  const service: ResourceService = createDemo(store, demoSettings)
  const running = await startHost(host, service, prefix)
  return {
    ...running,
    store,
    async close() {
      await running.close()
      await service.close()
      await store.close?.()
    },
  }
}

/** The value of Authorization for the account of the demo. */
export const basicCredentials: string = `Basic ${btoa(`${demoSettings.user}:${demoSettings.password}`)}`

/** The value of Authorization with a token as the issuer of the demo would sign it. */
export function bearerCredentials(claims: Readonly<Record<string, unknown>> = { role: 'admin' }): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const now = Math.floor(Date.now() / 1000)
  const all = { iss: 'demo', aud: 'demo', sub: 'admin', iat: now, exp: now + 3600, ...claims }
  const input = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(all)}`
  return `Bearer ${input}.${createHmac('sha256', demoSettings.secret).update(input).digest('base64url')}`
}
