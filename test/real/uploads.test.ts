import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { BODIES, BOUNDARY, lines } from '../body-types/multipart-bodies.ts'
import { formatRequest } from '../support/ask.ts'
import { type RunningDemo, startDemo } from '../support/demo.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { openRawClient } from '../wire/raw-client.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const STORES: Readonly<Record<string, () => Promise<ResourceStore>>> = {
  memory: async () => memoryStore(),
  SQLite: async () => {
    const file = await createDatabaseFile()
    cleanups.push(() => file.remove())
    return sqliteStore(file.open())
  },
}

async function start(store: string): Promise<RunningDemo> {
  const demo = await startDemo('plain', { store: await STORES[store]!() })
  cleanups.push(() => demo.close())
  return demo
}

const TYPE = `multipart/form-data; boundary=${BOUNDARY}`
const TITLE = ['--', 'Content-Disposition: form-data; name="title"', '', 'A title']
const FILE_HEAD = 'Content-Disposition: form-data; name="file"; filename="x.png"'
const upload = (...more: string[]) =>
  lines(...TITLE, '--', FILE_HEAD, 'Content-Type: image/png', '', 'PNG', ...more, '----', '')

const post = (demo: RunningDemo, body: string | Uint8Array, type = TYPE) =>
  demo.send({ method: 'POST', path: '/uploads', headers: { 'Content-Type': type }, body })

const listed = async (demo: RunningDemo) =>
  JSON.parse((await demo.send({ path: '/uploads' })).body.toString()) as object[]

/** Open descriptors of this process, where the system tells. */
function countDescriptors(): number {
  return process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0
}

describe.each(Object.keys(STORES))('an upload to the %s store', (name) => {
  it('of a title and a file is accepted: 202, Location, no body; the file can be read (rows F13, H59)', async () => {
    const demo = await start(name)
    const first = await post(demo, upload())
    expect([first.status, first.body.length]).toEqual([202, 0])
    const location = String(first.headers['location'])
    expect(location).toMatch(/^\/uploads\/\d+$/)
    const second = await post(demo, upload())
    expect(second.headers['location']).not.toBe(location)
    const item = await demo.send({ path: location })
    expect(JSON.parse(item.body.toString())).toMatchObject({
      title: 'A title',
      file: { name: 'x.png', type: 'image/png', size: 3 },
    })
    const file = await demo.send({ path: `${location}/file` })
    expect([file.status, file.headers['content-type'], file.body.toString()]).toEqual([200, 'image/png', 'PNG'])
  })

  it.each([
    ['cut inside the file (threat 70)', upload().slice(0, -30), 400],
    ['cut before its last delimiter (row F9)', upload().slice(0, -16), 400],
    ['with a part of no disposition (threat 73)', upload('--', 'X: y', '', 'v'), 400],
    ['with an attachment (threat 73)', upload('--', 'Content-Disposition: attachment; name="a"', '', 'v'), 400],
    ['with an unterminated file name (threat 73)', upload('--', `${FILE_HEAD.slice(0, -1)}`, '', 'v'), 400],
    ['with a bad part before a good one (threat 74)', lines('--', 'X', '', '1') + '\r\n' + upload(), 400],
    ['with a base64 part (row F7)', upload('--', FILE_HEAD, 'Content-Transfer-Encoding: base64', '', 'v'), 400],
    [
      'with an unknown charset (threat 72)',
      upload('--', 'Content-Disposition: form-data; name="c"', 'Content-Type: text/plain; charset=utf-7', '', 'v'),
      415,
    ],
    ['with a second file of the name', upload('--', FILE_HEAD, '', 'v'), 422],
    ['with U+0000 in its title (threat 64)', upload().replace('A title', 'A\0title'), 422],
    ['with a file that is not expected', upload('--', FILE_HEAD.replace('file"', 'other"'), '', 'v'), 422],
    ['without its file', lines(...TITLE, '----', ''), 422],
    ['without its title', lines('--', FILE_HEAD, '', 'v', '----', ''), 422],
  ])('%s is refused and leaves nothing', async (_, body, status) => {
    const demo = await start(name)
    expect((await post(demo, body)).status).toBe(status)
    expect(await listed(demo)).toEqual([])
  })

  it('that the client aborts midway leaves no item and no descriptor, 200 times (row F12, threat 70)', async () => {
    const demo = await start(name)
    await post(demo, upload())
    const before = countDescriptors()
    const beginning = lines(...TITLE, '--', FILE_HEAD, '', '')
    const body = Buffer.concat([Buffer.from(beginning), Buffer.alloc(200_000, 'x')])
    const fields = [`Content-Type: ${TYPE}`, 'Content-Length: 99999999']
    const request = formatRequest({ method: 'POST', target: '/uploads', fields, body })
    for (let round = 0; round < 20; round++) {
      const served = Array.from({ length: 10 }, () => once(demo.server, 'request'))
      const clients = await Promise.all(Array.from({ length: 10 }, () => openRawClient(demo.port)))
      for (const [i, client] of clients.entries()) {
        client.send(request.subarray(0, request.length - (i * body.length) / 10))
      }
      await Promise.all(served)
      for (const client of clients) client.socket.destroy()
      await Promise.all(clients.map((client) => client.closed))
    }
    expect(await listed(demo)).toHaveLength(1)
    const connections = () => new Promise<number>((resolve) => demo.server.getConnections((_, count) => resolve(count)))
    while ((await connections()) > 0) await new Promise(setImmediate)
    expect(countDescriptors()).toBeLessThanOrEqual(before)
    expect((await post(demo, upload())).status).toBe(202)
  })
})

describe('POST /uploads', () => {
  it('answers every multipart body with 4xx where it is malformed, whole and byte by byte', async () => {
    const demo = await start('memory')
    const ask = async (headers: readonly string[], body: Uint8Array) => {
      const client = await openRawClient(demo.port)
      const fields = [`Content-Type: ${TYPE}`, ...headers]
      client.send(formatRequest({ method: 'POST', target: '/uploads', fields, body }))
      const { status } = await client.read('POST')
      client.socket.destroy()
      return status
    }
    for (const [description, body, expectation] of BODIES) {
      const bytes = Buffer.from(body as string)
      const malformed = typeof expectation === 'number' ? expectation : 'parts' in expectation ? 400 : undefined
      const chunks = Array.from(bytes, (byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]))
      const statuses = [
        await ask([], bytes),
        await ask(['Transfer-Encoding: chunked'], Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])),
      ]
      // None of the well-formed ones is an upload: a title or the file is missing, or there is a file too many.
      for (const status of statuses) expect([malformed ?? 422, 422], description).toContain(status)
    }
  })
})
