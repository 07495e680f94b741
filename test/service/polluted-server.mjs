// A server in a realm of its own, whose Object.prototype a test may pollute. Runs as a worker.
import { createServer } from 'node:http'
import { parentPort } from 'node:worker_threads'
import * as library from '../../src/index.ts'

const KEY = Buffer.alloc(32, 1)

/** Every public function that takes options, with as few of them as it can do with. */
function createRoutes() {
  const { auth, basic, bearer, collection, createResourceService, digest, document, jwt, memoryStore, mount } = library
  const accounts = { ada: 'lovelace' }
  const schemes = [
    basic({ accounts, throttle: library.attemptLimit() }),
    digest({ accounts }),
    bearer(jwt({ keys: KEY, algorithms: ['HS256'], issuer: 'i', audience: 'a' })),
  ]
  const guarded = createResourceService(memoryStore(), {
    resources: {
      '/items': collection({ requireAuth: 'writes', files: { file: {} } }),
      '/secret': collection({ requireAuth: 'all' }),
      '/jobs': collection({ create: 'accepted' }),
      '/docs/{name}': document(),
      '/one': library.singleton(),
    },
    auth: { schemes, requireAuth: 'all' },
    cors: { origins: ['https://a.example'] },
    onError: () => {},
  })
  const open = createResourceService(memoryStore(), { onError: () => {} })
  const soft = createResourceService(memoryStore(), { resources: { '/items': collection({ deletion: 'soft' }) } })
  return {
    '/guarded': mount('/guarded', guarded),
    '/open': mount('/open', open),
    '/soft': mount('/soft', soft),
    '/auth': auth({ schemes }),
    '/range': library.range(() => ({ contentType: 'text/plain', content: 'content' })),
    '/conditional': library.conditional(() => ({ entityTag: '"1"' })),
    '/patch': library.patch({ read: () => ({ document: { a: 1 } }), write: () => {} }),
    '/body': library.bodyParse(),
    '/preflight': library.preflight({ origins: 'https://a.example' }),
    '/https': library.requireHttps(),
    '/override': library.methodOverride(),
  }
}

let routes = createRoutes()

const server = createServer((req, res) => {
  const path = Object.keys(routes).find((path) => req.url.startsWith(path))
  if (path === undefined) return void res.end('bare')
  routes[path](req, res, (error) => void res.end(error === undefined ? 'the route' : `failed: ${error}`))
})

/** @param {unknown} value functions do not travel between threads */
const revive = (value) => (value === 'a function' ? () => true : value)

const tasks = {
  construct: () => {
    routes = createRoutes()
  },
  pollute: ({ name, value }) => {
    Object.prototype[name] = revive(value)
  },
  clean: ({ name }) => {
    delete Object.prototype[name]
  },
}

parentPort.on('message', ({ steps, name, value }) => {
  let failure = ''
  try {
    for (const step of steps) tasks[step]({ name, value })
  } catch (error) {
    failure = String(error)
  }
  parentPort.postMessage(failure)
})
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
