import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { jsonOf, startService, type Target, USER } from './support.ts'

const KEY = { 'Idempotency-Key': 'a-key-of-16-chars' }

async function start(): Promise<Target> {
  const resources = {
    '/users': collection({ idempotency: 'optional' }),
    '/photos': collection({ idempotency: 'optional', files: { photo: {}, other: {} } }),
  }
  const target = await startService({ resources })
  closeAfterTest(() => target.close())
  return target
}

const count = async (store: ResourceStore, path = '/users') => (await store.list(path, { limit: 50 })).items.length

describe('forms that are made to look like another one under the same key', () => {
  const part = (head: string, content: string | Buffer) =>
    Buffer.concat([
      Buffer.from(`--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ])
  const end = Buffer.from('--b--\r\n')
  const [title, photo] = [part('name="title"', 'A'), part('name="photo"; filename="a"', 'png')]
  const forms: readonly (readonly [string, readonly Buffer[], number])[] = [
    ['the same parts', [title, photo, end], 201],
    ['a preamble', [Buffer.from('before\r\n'), title, photo, end], 201],
    ['an epilogue', [title, photo, end, Buffer.from('after')], 201],
    ['names without quotes', [title, part('name=photo; filename=a', 'png'), end], 201],
    ['another order', [photo, title, end], 422],
    ['a part twice', [title, title, photo, end], 422],
    ['one part less', [photo, end], 422],
    [
      'a value that looks like a part',
      [part('name="title"', 'A\r\n--b-\r\nContent-Disposition: form-data; name="photo"'), end],
      400,
    ],
    ['a name that looks like two', [part('name="title\\",\\"A"', ''), photo, end], 422],
    ['a file in place of the field', [part('name="other"; filename="title"', 'A'), photo, end], 422],
    ['the file under another name', [title, part('name="other"; filename="a"', 'png'), end], 422],
    ['another file name', [title, part('name="photo"; filename="b"', 'png'), end], 422],
    ['another case of the file name', [title, part('name="photo"; filename="A"', 'png'), end], 422],
    ['a file name in another charset', [title, part("name=photo; filename*=ISO-8859-1''%E1", 'png'), end], 422],
    ['a type of the file', [title, part('name="photo"; filename="a"\r\nContent-Type: text/html', 'png'), end], 422],
    [
      'a byte at the border of field and file',
      [part('name="title"', 'Ap'), part('name="photo"; filename="a"', 'ng'), end],
      422,
    ],
  ]

  it.each(['whole', 'in chunks'] as const)('are compared by their parts, sent %s (issue 20, point 3)', async (way) => {
    const target = await start()
    const results: unknown[] = []
    const fields = { 'Content-Type': 'multipart/form-data; boundary=b', ...KEY }
    for (const [name, pieces] of forms) {
      const body = Buffer.concat(pieces)
      const answer = await target.send('POST', '/photos', { fields, body, chunked: way === 'in chunks' })
      results.push([name, answer.status])
    }
    expect(results).toEqual(forms.map(([name, , status]) => [name, status]))
    expect(await count(target.store, '/photos')).toBe(1)
  })
})

describe('keys that are guessed or piled up', () => {
  it('answer a known key alike for every other content, whatever the first one was', async () => {
    const { send } = await start()
    await send('POST', '/users', jsonOf(USER, KEY))
    const refusals: Answer[] = []
    for (const name of ['a', 'b'.repeat(1000)]) refusals.push(await send('POST', '/users', jsonOf({ name }, KEY)))
    const [one, other] = refusals.map(({ status, text }) => [status, text.replaceAll(/"instance":"[^"]*"/g, '')])
    expect(one).toEqual(other)
    expect(one![0]).toBe(422)
    expect(String(one![1])).not.toContain('Ann')
  })

  it('leave nothing in the store when their requests are refused', async () => {
    const target = await start()
    let paths = 0
    const { store } = target
    const counting = store.create
    Object.assign(store, {
      create: (...given: Parameters<typeof counting>) => {
        paths++
        return counting(...given)
      },
    })
    for (let i = 0; i < 50; i++) {
      const answer = await target.send('POST', '/users', jsonOf([i], { 'Idempotency-Key': `key-of-16-chars-${i}` }))
      expect(answer.status).toBe(422)
    }
    expect([paths, await count(store)]).toEqual([0, 0])
  })
})

describe('Idempotency-Key of clients that send slowly or give up', () => {
  it('is free after a request that was broken off, and creates once when it is sent a byte at a time', async () => {
    const target = await start()
    const body = JSON.stringify(USER)
    const head = `POST /users HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nIdempotency-Key: ${KEY['Idempotency-Key']}\r\nConnection: close\r\n\r\n`
    const text = head + body
    for (const length of [head.length, head.length + 1, text.length - 1]) {
      const socket = connect({ port: target.port, host: '127.0.0.1' })
      await once(socket, 'connect')
      await new Promise((resolve) => socket.write(text.slice(0, length), resolve))
      await sleep(10)
      socket.resetAndDestroy()
    }
    expect(await count(target.store)).toBe(0)
    const drip = async () => {
      const socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true })
      // From the beginning on: on a busy machine the connection closes before the last sleep ends.
      const closed = once(socket, 'close')
      let answer = ''
      socket.setEncoding('latin1').on('data', (chunk) => void (answer += chunk))
      for (const byte of text) {
        socket.write(byte)
        await sleep(1)
      }
      await closed
      return answer
    }
    const answers = await Promise.all([drip(), drip(), drip()])
    expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 201 ')).length).toBe(3)
    expect(answers.filter((answer) => answer.includes('Idempotency-Replayed: ?1')).length).toBe(2)
    expect(await count(target.store)).toBe(1)
  })
})
