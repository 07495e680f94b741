// What the values of an item add to POST, in processor time of the process that serves: the same requests, by turns, to a
// service whose items are indexed and to one whose items are not. node bench/indexed-writes.mjs sqlite|postgres://... [posts]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { collection, createResourceService } from '../dist/index.js'
import { openItemStore } from './stores.mjs'

const [kind = 'sqlite', count = '4000'] = process.argv.slice(2)
const index = {
  version: 'bench',
  properties: ['city', 'done', 'dueAt', 'owner', 'priority', 'status'],
  scope: ['owner'],
  valuesOf: ({ body }) => JSON.parse(body),
}
const { store } = await openItemStore(kind)

/** As a definition with five properties and a scope of one writes its items. */
const indexing = {
  ...store,
  create: (path, content, options) =>
    store.create(path, (name) => addValues(typeof content === 'function' ? content(name) : content), options),
}

function addValues(content) {
  return { ...content, indexed: { index, values: JSON.parse(Buffer.from(content.body).toString()) } }
}

const CLIENT = `
import { Agent, request } from 'node:http'
const [port, path, count] = process.argv.slice(1)
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
const post = (i) => new Promise((resolve, reject) => {
  const req = request({ port, path, method: 'POST', agent, headers: { 'Content-Type': 'application/json' } }, (res) => {
    res.resume().on('end', () => (res.statusCode === 201 ? resolve() : reject(new Error(String(res.statusCode)))))
  })
  req.on('error', reject).end(JSON.stringify({ city: 'city ' + (i % 97), done: i % 2 === 0, owner: 'o' + (i % 10),
    dueAt: new Date(i * 1e7).toISOString(), priority: i % 5, status: 's' + (i % 5) }))
})
for (let i = 0; i < count; i += 16) await Promise.all(Array.from({ length: 16 }, (_, j) => post(i + j)))
agent.destroy()
`

async function measure(service, path, posts) {
  const server = createServer(service).listen(0)
  await once(server, 'listening')
  const before = process.cpuUsage()
  const client = spawn(
    process.execPath,
    ['--input-type=module', '-e', CLIENT, String(server.address().port), path, String(posts)],
    { stdio: 'inherit' },
  )
  const [code] = await once(client, 'exit')
  if (code !== 0) throw new Error('The client has failed.')
  const { user, system } = process.cpuUsage(before)
  server.close()
  return (user + system) / posts
}

const plain = createResourceService(store, { resources: { '/plain': collection() } })
const indexed = createResourceService(indexing, { resources: { '/indexed': collection() } })
const costs = { plain: [], indexed: [] }
await measure(plain, '/plain', 1600)
await measure(indexed, '/indexed', 1600)
for (let round = 0; round < 5; round++) {
  costs.plain.push(await measure(plain, '/plain', Number(count) / 5))
  costs.indexed.push(await measure(indexed, '/indexed', Number(count) / 5))
}
const median = (values) => values.sort((a, b) => a - b)[2]
const [a, b] = [median(costs.plain), median(costs.indexed)]
console.log(
  `${kind.split(':')[0]}: POST ${a.toFixed(0)} µs, with six indexed properties ${b.toFixed(0)} µs: ${(b / a).toFixed(2)}`,
)
await store.close?.()
process.exit()
