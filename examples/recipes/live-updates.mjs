// examples/recipes/live-updates.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'

/** The responses of the clients that listen. */
const listeners = new Set()
const MOST_LISTENERS = 1000
/** Bytes that a slow reader may leave unread. */
const MOST_WAITING = 64 * 1024

function publish({ eventId, kind, path, after }) {
  const data = JSON.stringify({ kind, path, tag: after?.tag })
  for (const res of listeners) {
    res.write(`id: ${eventId}\nevent: change\ndata: ${data}\n\n`)
    // It connects again by itself, and reads the collection anew.
    if (res.writableLength > MOST_WAITING) res.destroy()
  }
}

const service = createResourceService(memoryStore(), {
  resources: { '/tasks': collection({ afterCommit: publish }) },
})

function listen(req, res) {
  if (req.method !== 'GET') return res.writeHead(405, { Allow: 'GET' }).end()
  if (listeners.size === MOST_LISTENERS) return res.writeHead(503, { 'Retry-After': '10' }).end()
  // nginx keeps small events back where it speaks HTTP/1.0 to the server, as it does by default, unless it is asked not to.
  const fields = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' }
  res.writeHead(200, fields)
  res.write(': connected\n\n')
  listeners.add(res)
  res.once('close', () => listeners.delete(res))
}

// A comment now and then keeps proxies from closing a silent connection.
setInterval(() => {
  for (const res of listeners) res.write(': alive\n\n')
}, 15_000).unref()

createServer((req, res) => (req.url === '/events' ? listen(req, res) : service(req, res))).listen(8080)
