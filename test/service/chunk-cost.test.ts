import type { IncomingMessage, RequestListener } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { patch } from '../../src/handlers/patch.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { listen } from '../handlers/serve.ts'
import { chunkedRequest, cpuOf, openWith } from '../support/chunked.ts'
import { MEASURED } from '../support/measured.ts'

const MIB = 1024 * 1024
const JSON_TYPE = 'Content-Type: application/json'

/** An object of `size` bytes of JSON, with a string in every 100 of them. */
function jsonOf(size: number): Buffer {
  const item = `"${'x'.repeat(97)}",`
  const text = `{"a":[${item.repeat(Math.floor((size - 200) / item.length))}`
  return Buffer.from(`${text}"${'y'.repeat(size - text.length - 4)}"]}`)
}

const BOUNDARY = 'b0undary'
function formOf(content: Uint8Array): Buffer {
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n`
  return Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)])
}

/** The least that a server can do: join the chunks, and use the whole. */
const bare =
  (use: (whole: Buffer) => unknown): RequestListener =>
  (req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      use(Buffer.concat(chunks))
      res.writeHead(204).end()
    })
  }

const parseBare = bare((whole) => JSON.parse(whole.toString()))
const joinBare = bare(() => {})

const service: RequestListener = createResourceService(memoryStore(), {
  contentCodings: ['gzip'],
  resources: {
    '/items': collection({ files: { f: {} } }),
    '/settings': singleton(),
    '/any/{name}': document(),
  },
})
const plain: RequestListener = createResourceService(memoryStore())
const parse = bodyParse({ contentCodings: ['gzip'] })
const parsed: RequestListener = (req, res) => {
  parse(req, res, async () => {
    const { body } = req as IncomingMessage & { body?: { collect?: () => Promise<unknown> } }
    await body?.collect?.()
    res.writeHead(204).end()
  })
}
const patched: RequestListener = patch({ read: () => ({ document: {} }), write: () => {}, reply: 'minimal' })

/** The lower of some runs: what else the machine does only adds to it. */
async function lowestCost(listener: RequestListener, wire: Uint8Array, statuses: readonly number[]): Promise<number> {
  const port = await listen(listener)
  let lowest = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3; i++) {
    const { cpu, status } = await cpuOf(port, wire)
    expect(statuses).toContain(status)
    lowest = Math.min(lowest, cpu)
  }
  return lowest
}

type Row = readonly [name: string, listener: RequestListener, line: string, type: string]

const JSON_READERS: readonly Row[] = [
  ['PUT without definitions', plain, 'PUT /any HTTP/1.1', JSON_TYPE],
  ['PUT of a document', service, 'PUT /any/1 HTTP/1.1', JSON_TYPE],
  ['PUT of a singleton', service, 'PUT /settings HTTP/1.1', JSON_TYPE],
  ['POST to a collection', service, 'POST /items HTTP/1.1', JSON_TYPE],
  ['bodyParse', parsed, 'POST / HTTP/1.1', JSON_TYPE],
  ['patch', patched, 'PATCH / HTTP/1.1', 'Content-Type: application/merge-patch+json'],
]

describe('content in small chunks', () => {
  it.each(JSON_READERS)(
    'costs little more than to join and parse it: JSON in chunks of 32 bytes, %s (issue 16)',
    MEASURED,
    async (_, listener, line, type) => {
      const content = jsonOf(2 * MIB)
      const wire = chunkedRequest(line, [type], content, 32)
      const least = await lowestCost(parseBare, wire, [204])
      // The bound is 2; the rest is for what else the machine does.
      expect(await lowestCost(listener, wire, [200, 201, 204])).toBeLessThan(2.5 * least)
    },
  )

  it.each<Row>([
    ['POST to a collection', service, 'POST /items HTTP/1.1', `multipart/form-data; boundary=${BOUNDARY}`],
    ['bodyParse', parsed, 'POST / HTTP/1.1', `multipart/form-data; boundary=${BOUNDARY}`],
  ])(
    'costs little more than to join it: a file of a form in chunks of 1 byte, %s (issue 16)',
    MEASURED,
    async (_, ...row) => {
      const [listener, line, type] = row
      const wire = chunkedRequest(line, [`Content-Type: ${type}`], formOf(Buffer.alloc(128 * 1024, 'x')), 1)
      const least = await lowestCost(joinBare, wire, [204])
      expect(await lowestCost(listener, wire, [201, 204])).toBeLessThan(2.5 * least)
    },
  )

  it.each<Row>([
    ['PUT of a document', service, 'PUT /any/1 HTTP/1.1', 'application/octet-stream'],
    ['a urlencoded form', parsed, 'POST / HTTP/1.1', 'application/x-www-form-urlencoded'],
    ['text', parsed, 'POST / HTTP/1.1', 'text/plain'],
  ])(
    'costs little more than to join it: other content in chunks of 1 byte, %s (issue 16)',
    MEASURED,
    async (_, ...row) => {
      const [listener, line, type] = row
      const wire = chunkedRequest(line, [`Content-Type: ${type}`], Buffer.from(`a=${'x'.repeat(128 * 1024)}`), 1)
      const least = await lowestCost(joinBare, wire, [204])
      expect(await lowestCost(listener, wire, [201, 204])).toBeLessThan(2.5 * least)
    },
  )

  it.each<Row>([
    ['PUT of a document', service, 'PUT /any/1 HTTP/1.1', JSON_TYPE],
    ['bodyParse', parsed, 'POST / HTTP/1.1', JSON_TYPE],
  ])(
    'costs little more than to join it: coded content in chunks of 1 byte, %s (issue 16)',
    MEASURED,
    async (_, ...row) => {
      const [listener, line, type] = row
      const content = gzipSync(JSON.stringify(Array.from({ length: 15_000 }, () => Math.random())))
      const wire = chunkedRequest(line, [type, 'Content-Encoding: gzip'], content, 1)
      const least = await lowestCost(joinBare, wire, [204])
      expect(await lowestCost(listener, wire, [200, 201, 204])).toBeLessThan(3 * least)
    },
  )
})

describe('memory of content that arrives', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void

  async function held(): Promise<number> {
    for (let i = 0; i < 2; i++) {
      collect()
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  it.each(JSON_READERS)(
    'grows by at most twice the content: JSON in chunks of 1 byte, %s (issue 16)',
    MEASURED,
    async (_, listener, line, type) => {
      const content = jsonOf(MIB / 2)
      const wire = chunkedRequest(line, [type], content, 1)
      const most = wire.length - 100
      let received = () => 0
      const port = await listen((req, res) => {
        received = () => req.socket.bytesRead
        listener(req, res)
      })
      const before = await held()
      const socket = await openWith(port, wire.subarray(0, most))
      const deadline = Date.now() + 15_000
      while (received() < most && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
      expect(received()).toBe(most)
      const grown = (await held()) - before
      socket.destroy()
      expect(grown).toBeLessThan(2 * content.length + 256 * 1024)
    },
  )
})
