import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
// @ts-expect-error the demo is JavaScript, as its readers will write it
import { putPageInFront } from '../../examples/demo/front.js'
// @ts-expect-error the demo is JavaScript, as its readers will write it
import { createDemo, seed } from '../../examples/demo/service.js'
import { mount } from '../../src/adapters/node.ts'
import type { ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { bearerCredentials, demoSettings } from '../support/demo.ts'

const IN_PAGE = readFileSync(new URL('in-page.js', import.meta.url), 'utf8')

/** The plan, as the page edits it. */
export interface Plan {
  readonly title: string
  readonly place: string
  readonly guests: number
  readonly vegetarian: boolean
  readonly edits: number
}

export interface DemoPages {
  readonly origin: string
  /** The states that the plan has had, in the order in which the store took them; the first is the seeded one. */
  readonly states: readonly Plan[]
  /** A token of an admin. */
  readonly token: string
  /** Opens the page, and waits until it is ready. */
  open(options?: BrowserContextOptions): Promise<DemoPage>
  close(): Promise<void>
}

export interface DemoPage {
  readonly page: Page
  /** What went wrong in the page: errors, and what its Content-Security-Policy refused. */
  readonly faults: readonly string[]
  /** Calls a function of `in-page.js` inside the page. */
  run<Result>(name: string, ...args: readonly unknown[]): Promise<Result>
  /** A number of the head of the editors. */
  count(name: 'saved' | 'merged' | 'lost'): Promise<number>
}

/** Starts the demo with its page, and a browser to open it in. */
export async function startPages(executablePath: string): Promise<DemoPages> {
  const states: Plan[] = []
  const store = recordStates(memoryStore(), states)
  await seed(store)
  const service: ResourceService = createDemo(store, demoSettings)
  const api = mount('/api', service)
  const server = createServer((req, res) => api(req, res, () => service(req, res)))
  putPageInFront(server, demoSettings.origins)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const browser: Browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--no-proxy-server'] })

  return {
    origin,
    states,
    token: bearerCredentials().replace('Bearer ', ''),
    async open(options = {}) {
      const page = await browser.newPage(options)
      await page.addInitScript(IN_PAGE)
      const faults: string[] = []
      page.on('pageerror', (error) => faults.push(String(error)))
      page.on('console', (message) => {
        // The browser itself reports answers such as 412.
        if (message.type() === 'error' && !/the server responded with/.test(message.text())) faults.push(message.text())
      })
      await page.goto(origin)
      await page.waitForSelector('html[data-ready]')
      return {
        page,
        faults,
        run: (name, ...args) =>
          page.evaluate(
            ([name, args]) => {
              const { inPage } = globalThis as unknown as { inPage: Record<string, (...args: unknown[]) => never> }
              return inPage[name]!(...args)
            },
            [name, args] as const,
          ),
        count: async (name) => Number(await page.locator(`#count-${name}`).textContent()),
      }
    },
    async close() {
      await browser.close()
      server.closeAllConnections()
      server.close()
      await service.close()
    },
  }
}

function recordStates(store: ResourceStore, states: Plan[]): ResourceStore {
  return {
    ...store,
    async write(path, content, options) {
      const result = await store.write(path, content, options)
      if (path === '/plan' && result.outcome !== 'conflict') {
        const { body } = result.resource
        states.push(JSON.parse(typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString()))
      }
      return result
    },
  }
}
