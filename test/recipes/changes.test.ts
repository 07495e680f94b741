import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { startRecipe } from '../support/recipes.ts'

const as = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` })

describe('examples/recipes/audit-trail.mjs', () => {
  it('has an entry for each change, for auditors alone', async () => {
    const { send } = await startRecipe('audit-trail.mjs')
    const [ada, auditor] = [as('ada', 'lovelace'), as('auditor', 'secret')]
    expect((await send('POST', '/tasks', { headers: ada, json: { title: 'a' } })).status).toBe(201)
    expect((await send('PUT', '/tasks/1', { headers: ada, json: { title: 'b' } })).status).toBe(204)
    expect((await send('DELETE', '/tasks/1', { headers: ada })).status).toBe(204)
    expect((await send('DELETE', '/tasks/1', { headers: ada })).status).toBe(410)
    expect((await send('GET', '/audit', { headers: ada })).status).toBe(403)
    const { status, value } = await send('GET', '/audit', { headers: auditor })
    expect(status).toBe(200)
    const entries = value.sort((a: { eventId: string }, b: { eventId: string }) => (a.eventId < b.eventId ? -1 : 1))
    expect(entries).toMatchObject([
      { kind: 'created', path: '/tasks/1', after: { value: { title: 'a' } }, principal: { id: 'ada' } },
      { kind: 'replaced', before: { value: { title: 'a' } }, after: { value: { title: 'b' } } },
      { kind: 'deleted', before: { value: { title: 'b' } } },
    ])
    expect(entries).toHaveLength(3)
    const path = `/audit/${entries[0].eventId}`
    expect((await send('GET', path, { headers: auditor })).status).toBe(200)
    expect((await send('PUT', path, { headers: auditor, json: {} })).status).toBe(405)
  })
})

describe('examples/recipes/webhooks.mjs', () => {
  it('sends each change until the receiver has taken it', async () => {
    const received: { readonly signature: unknown; readonly body: string }[] = []
    const receiver = createServer(async (req, res) => {
      received.push({ signature: req.headers['x-signature'], body: await text(req) })
      res.writeHead(received.length === 1 ? 500 : 204).end()
      receiver.emit('received')
    })
    await once(receiver.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const { send } = await startRecipe('webhooks.mjs', { WEBHOOK_URL: url, WEBHOOK_SECRET: 'secret' })
    for (const title of ['a', 'b'.repeat(100_000)]) {
      const count = received.length
      expect((await send('POST', '/tasks', { json: { title } })).status).toBe(201)
      while (received.length < count + (title === 'a' ? 2 : 1)) await once(receiver, 'received')
    }
    expect((await send('GET', '/messages')).status).toBe(404)
    const [refused, first, second] = received.map(({ body }) => JSON.parse(body))
    expect(refused).toEqual(first)
    expect([first.kind, first.path, first.after.value.title]).toEqual(['created', '/tasks/1', 'a'])
    expect(second.after.value.title).toHaveLength(100_000)
    for (const { signature, body } of received) {
      expect(signature).toBe(createHmac('sha256', 'secret').update(body).digest('hex'))
    }
    receiver.closeAllConnections()
    receiver.close()
  })

  it('puts aside a message that is always refused, and sends those behind it', async () => {
    const received: string[] = []
    const receiver = createServer(async (req, res) => {
      const { title } = JSON.parse(await text(req)).after.value
      received.push(title)
      const isFirst = received.length === 1
      res.writeHead(isFirst ? 503 : title === 'poison' ? 422 : 204).end()
      receiver.emit('received')
    })
    await once(receiver.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const { send } = await startRecipe('webhooks.mjs', { WEBHOOK_URL: url, WEBHOOK_REFUSALS: '2' })
    for (const title of ['poison', 'good']) await send('POST', '/tasks', { json: { title } })
    while (!received.includes('good')) await once(receiver, 'received')
    expect(received).toEqual(['poison', 'poison', 'poison', 'good'])
    expect((await send('GET', '/refused')).status).toBe(404)
    receiver.closeAllConnections()
    receiver.close()
  })
})

describe('examples/recipes/live-updates.mjs', () => {
  it('sends every change to those who listen', async () => {
    const { base, send } = await startRecipe('live-updates.mjs')
    const leave = new AbortController()
    const events = await fetch(`${base}/events`, { signal: leave.signal })
    expect([events.status, events.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const readUntil = async (part: string) => {
      while (!text.includes(part)) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`The events have ended: ${text}`)
        text += value
      }
    }
    await readUntil(': connected')
    const created = await send('POST', '/tasks', { json: { title: 'a' } })
    expect((await send('DELETE', '/tasks/1')).status).toBe(204)
    await readUntil('deleted')
    const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, line]) => JSON.parse(line!))
    expect(data).toEqual([
      { kind: 'created', path: '/tasks/1', tag: created.headers.get('etag') },
      { kind: 'deleted', path: '/tasks/1' },
    ])
    leave.abort()
    expect((await send('POST', '/events', { json: {} })).status).toBe(405)
  })
})
