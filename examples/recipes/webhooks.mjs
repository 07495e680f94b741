// examples/recipes/webhooks.mjs
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { collection, createResourceService, json, memoryStore } from 'http-resource-service'

const { WEBHOOK_URL = 'http://127.0.0.1:9000/', WEBHOOK_SECRET = 'change me', WEBHOOK_REFUSALS = '60' } = process.env
/** The receiver is busy: that says nothing of the message. */
const LATER = [408, 429, 502, 503, 504]
/** How often each message has been refused. */
const refusals = new Map()

const store = memoryStore() // with an SQL store messages survive a crash
const service = createResourceService(store, {
  resources: {
    // No definition is for /messages and /refused: clients do not see them.
    '/tasks': collection({ outbox: (change) => [{ path: `/messages/${change.eventId}`, content: json(change) }] }),
  },
})

/** @param {import('http-resource-service').StoredResource} state */
function readText({ body, size }) {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return new TextDecoder().decode(body)
  return text(body.open(0, size - 1)) // above the inlineLimit of the store
}

async function sendMessage(message) {
  const body = await readText(message)
  const response = await fetch(WEBHOOK_URL, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Signature': createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex'),
    },
    body,
    redirect: 'error',
    signal: AbortSignal.timeout(10_000),
  })
  await response.body?.cancel()
  const isRefused = !response.ok && !LATER.includes(response.status)
  if (isRefused) refusals.set(message.path, (refusals.get(message.path) ?? 0) + 1)
  const isDead = isRefused && refusals.get(message.path) >= Number(WEBHOOK_REFUSALS)
  if (!response.ok && !isDead) throw new Error(`The receiver answered ${response.status}.`)
  if (isDead) console.error(`webhook: ${message.path} is refused with ${response.status}, and kept in /refused`)
  const kept = {
    path: message.path.replace('/messages', '/refused'),
    content: { contentType: 'application/json', body },
  }
  await store.remove(message.path, {
    expect: { version: message.version },
    mode: 'erase',
    relatedWrites: isDead ? [kept] : [],
  })
  refusals.delete(message.path)
}

async function sendMessages() {
  let after
  do {
    const page = await store.list('/messages', { limit: 100, after })
    for (const message of page.items) await sendMessage(message)
    after = page.next
  } while (after !== undefined)
}

/** What fails is sent again in the next turn. */
async function run() {
  await sendMessages().catch((error) => console.error('webhook:', error.message))
  setTimeout(run, 1000).unref()
}

run()
createServer(service).listen(8080)
