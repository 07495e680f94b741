import { createServer } from 'node:http'
import { attach } from '../../src/adapters/node.ts'
import { createGoneError } from '../../src/contents/types.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { ask } from '../support/ask.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createFixtureStore, type FixtureStore } from '../support/fixture-store.ts'
import { runServer } from '../support/hosts.ts'

export interface Served {
  readonly port: number
  /** Sends one request, with field lines as they are sent; the answer has passed the linter. */
  send(method: string, target: string, fields?: readonly string[], body?: string | Uint8Array): Promise<Answer>
}

/** Sends requests to a server that listens. */
export function senderTo(port: number): Served['send'] {
  return (method, target, fields = [], body) =>
    ask(port, { method, target, fields, ...(body === undefined ? {} : { body }) })
}

/** Serves a store on a plain server, for one test. */
export async function serve(store: ResourceStore, options: ServiceOptions): Promise<Served> {
  const service = createResourceService(store, { fallthrough: false, ...options })
  const server = createServer(service)
  attach(server, service)
  const host = await runServer(server)
  closeAfterTest(() => Promise.all([host.close(), service.close()]))
  return { port: host.port, send: senderTo(host.port) }
}

/** The same store, whose lists have one item without its content. */
export function losing(store: ResourceStore, path: string): ResourceStore {
  const open = (): never => {
    throw createGoneError()
  }
  return {
    ...store,
    async list(...values) {
      const page = await store.list(...values)
      return { ...page, items: page.items.map((item) => (item.path === path ? { ...item, body: { open } } : item)) }
    },
  }
}

export const FIXTURE_RESOURCES: NonNullable<ServiceOptions['resources']> = {
  '/docs/{name}': document(),
  '/users': collection(),
  '/plain': collection({ types: ['text/plain'], methods: ['GET'] }),
}

/** Serves the fixtures: tags, dates and bytes that are known. */
export async function serveFixtures(options: ServiceOptions = {}): Promise<Served & { readonly store: FixtureStore }> {
  const store = createFixtureStore()
  return { ...(await serve(store, { resources: FIXTURE_RESOURCES, ...options })), store }
}
