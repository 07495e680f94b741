// A change without a condition is refused (428). So is one that comes after another change (412): the client tries again.
import { createServer } from 'node:http'
import { createResourceService, document, memoryStore } from 'http-resource-service'
import { createResourceClient } from 'http-resource-service/client'

const service = createResourceService(memoryStore(), {
  resources: { '/counters/{name}': document({ types: ['application/json'], preconditions: 'required' }) },
})
const server = createServer(service)
await new Promise((resolve) => server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', resolve))
const base = `http://127.0.0.1:${server.address().port}`
console.log(`listening on ${base}`)

const put = (value, headers = {}) =>
  fetch(`${base}/counters/a`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(value),
  })

console.log('create:', (await put({ count: 0 })).status)
console.log('without a condition:', (await put({ count: 1 })).status)
const tag = (await fetch(`${base}/counters/a`)).headers.get('etag')
console.log('with the tag:', (await put({ count: 1 }, { 'If-Match': tag })).status)
console.log('with the same tag again:', (await put({ count: 2 }, { 'If-Match': tag })).status)

// Ten edits at once: each reads and adds one, and tries again when another one came first.
const client = createResourceClient(base, { maxAttempts: 20 })
await Promise.all(Array.from({ length: 10 }, () => client.edit('/counters/a', ({ count }) => ({ count: count + 1 }))))
console.log('after ten edits:', await (await fetch(`${base}/counters/a`)).text())
