// A server that tells its parent what requests cost it: processor time, memory, and the longest turn of its event loop.
// Started by ../bodies.mjs with --expose-gc; dist/ must be built.
import { createServer } from 'node:http'
import { bodyParse, collection, createResourceService, document, patch, singleton } from '../../../dist/index.js'
import { memoryStore } from '../../../dist/stores/memory.js'

const MEMBERS = Number(process.argv[2] ?? 100_000)

/** The least that a server can do with content: join the chunks, and perhaps parse the whole. */
const bare = (use) => (req, res) => {
  const chunks = []
  req.on('data', (chunk) => chunks.push(chunk))
  req.on('end', () => {
    use(Buffer.concat(chunks))
    res.writeHead(204).end()
  })
}

const parse = bodyParse({ codings: ['gzip'] })

const service = createResourceService(memoryStore(), {
  codings: ['gzip'],
  limits: { jsonMembers: MEMBERS },
  resources: {
    '/items': collection({ files: { f: {} } }),
    '/settings/{name}': document({ types: ['application/json'] }),
    '/singleton': singleton(),
    '/docs/{name}': document(),
  },
})

const listeners = {
  '/bare-join': bare(() => {}),
  '/bare-parse': bare((whole) => JSON.parse(whole.toString())),
  '/body-parse': (req, res) =>
    parse(req, res, async () => {
      await req.body?.collect?.()
      res.writeHead(204).end()
    }),
  '/patch': patch({ read: () => ({ document: {} }), write: () => {}, reply: 'minimal' }),
  '/plain': createResourceService(memoryStore()),
}

let socket
const server = createServer((req, res) => {
  socket = req.socket
  const listener = listeners[req.url] ?? service
  listener(req, res)
})

async function held() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function cpu() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** The most processor time between two turns of the event loop, in milliseconds, until it is asked for. */
let longest = 0
let isWatching = false
function watch(last) {
  const now = cpu()
  longest = Math.max(longest, now - last)
  if (isWatching) setImmediate(watch, now)
}

process.on('message', async (question) => {
  if (question === 'cpu') process.send(cpu())
  else if (question === 'held') process.send(await held())
  else if (question === 'received') process.send(socket?.bytesRead ?? 0)
  else if (question === 'watch') {
    longest = 0
    isWatching = true
    watch(cpu())
    process.send(0)
  } else if (question === 'longest') {
    isWatching = false
    process.send(longest)
  }
})
process.on('disconnect', () => process.exit())

server.listen(0, '127.0.0.1', () => process.send(server.address().port))
