import { runInNewContext } from 'node:vm'
import { FormData as FormOfUndici, fetch as fetchOfUndici } from 'undici'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createResourceClient, expectSuccess, type Fetch, type ResourceClient } from '../../src/client.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { resources } from './resources.ts'
import { start } from './servers.ts'

const serve = () => start(createResourceService(memoryStore(), { resources, https: 'optional' }))

/** A Blob as packages make it: of the platform it has the name and the methods alone. */
function foreignBlob(text: string, type: string): Blob {
  const inner = new Blob([text], { type })
  const methods = (['arrayBuffer', 'slice', 'stream'] as const).map((name) => [name, inner[name].bind(inner)] as const)
  const members = { ...Object.fromEntries(methods), size: inner.size, type, [Symbol.toStringTag]: 'Blob' }
  return members as unknown as Blob
}

/** As old ones do: they know strings, and make one of everything else. */
const fetchOfText: Fetch = (url, { body, duplex: _, ...options }) =>
  fetch(url, body === undefined ? options : { ...options, body: String(body) })

describe('content of classes that are not the global ones', () => {
  it('is sent where the fetch knows it: forms and blobs of packages, bytes of another window', async () => {
    const base = await serve()
    const client = createResourceClient<typeof resources>(base)
    const form = new FormOfUndici()
    form.set('name', 'Ada')
    form.set('photo', new File(['pixels'], 'ada.png', { type: 'image/png' }))
    const people = createResourceClient<typeof resources>(base, { fetch: fetchOfUndici as unknown as Fetch })
    const { document } = expectSuccess(await people.create('/people', form as unknown as FormData))
    expect(document.value).toMatchObject({ name: 'Ada', photo: { type: 'image/png', size: 6 } })

    const blob = foreignBlob('text', 'text/plain')
    const options = { onProgress: () => undefined }
    expectSuccess(await client.upload('/files/{name}', { name: 'a' }, 'absent', blob, options))
    const { file } = expectSuccess(await client.download('/files/{name}', { name: 'a' }))
    expect([file.contentType, await (await file.blob()).text()]).toEqual(['text/plain', 'text'])

    const bytes = runInNewContext('new Uint8Array([1, 2, 3])') as Uint8Array
    expectSuccess(await client.create('/blobs', bytes))
    for await (const entry of client.list('/blobs')) expect(entry).toMatchObject({ size: 3 })
  })

  it('is sent where a Blob has no stream, as that of jsdom', async () => {
    vi.stubGlobal(
      'Blob',
      class extends Blob {
        override stream = undefined as never
      },
    )
    onTestFinished(() => void vi.unstubAllGlobals())
    const client = createResourceClient<typeof resources>(await serve())
    for (const [name, content] of Object.entries({
      blob: new Blob(['text']),
      text: 'text',
      bytes: Buffer.from('text'),
    })) {
      expectSuccess(await client.upload('/files/{name}', { name }, 'absent', content))
      const { file } = expectSuccess(await client.download('/files/{name}', { name }))
      expect(await (await file.blob()).text(), name).toBe('text')
    }
    expectSuccess(await client.create('/blobs', new Blob(['text'])))
  })

  it('is a TypeError where the fetch would send its name, such as [object Blob]', async () => {
    const sent = vi.fn((_, res) => res.writeHead(422).end())
    const client = createResourceClient(await start(sent), { fetch: fetchOfText })
    const blob = new Blob(['text'])
    const options = { onProgress: () => undefined }
    for (const request of [
      client.create('/a', new FormData()),
      client.create('/a', blob),
      client.upload('/a', 'any', blob),
      client.upload('/a', 'any', foreignBlob('text', 'text/plain')),
      client.upload('/a', 'any', blob, options),
    ]) {
      await expect(request).rejects.toThrow(new TypeError('The fetch does not take FormData or Blob of this class.'))
    }
    expect(sent).not.toHaveBeenCalled()
    expect(String(blob)).toBe('[object Blob]')
  })
})

describe('content that would be sent as something else', () => {
  type Requests = ResourceClient
  const requests: [string, (client: Requests, value: never) => Promise<unknown>][] = [
    ['create', (client, value) => client.create('/a', value)],
    ['replace', (client, value) => client.replace('/a', 'any', value)],
    ['edit', (client, value) => client.edit('/a', () => value)],
  ]
  const values: [string, unknown][] = [
    ['a Map', new Map([['a', 1]])],
    ['a promise in an array', [Promise.resolve({ a: 1 })]],
    ['a parameter list', new URLSearchParams('a=1')],
    ['a buffer', new ArrayBuffer(2)],
    ['a Blob in a member', { photo: new Blob(['pixels']) }],
    ['bytes in a member', { photo: new Uint8Array(2) }],
    ['an error', new Error('text')],
    ['nothing', undefined],
  ]
  it.each(requests)('is a TypeError of %s before anything is sent', async (_, request) => {
    const written = vi.fn()
    const base = await start((req, res) => {
      if (req.method !== 'GET') written(req.method)
      res.setHeader('ETag', '"1"').setHeader('Content-Type', 'application/json').end('{}')
    })
    const client = createResourceClient(base)
    for (const [name, value] of values) {
      await expect(request(client, value as never), name).rejects.toThrow(TypeError)
    }
    expect(written).not.toHaveBeenCalled()
  })

  it('is sent as JSON shows it where it has all that it holds in its members, or in its toJSON', async () => {
    class Person {
      readonly name = 'Ada'
      readonly born = new Date(0)
    }
    const bodies: string[] = []
    const base = await start(async (req, res) => {
      for await (const chunk of req) bodies.push(String(chunk))
      res.writeHead(422).end()
    })
    const client = createResourceClient(base)
    for (const value of [new Person(), runInNewContext('({ a: [1, null] })'), { url: new URL('http://a.example/') }]) {
      await client.create('/a', value)
    }
    expect(bodies).toEqual([
      '{"name":"Ada","born":"1970-01-01T00:00:00.000Z"}',
      '{"a":[1,null]}',
      '{"url":"http://a.example/"}',
    ])
  })

  it('is a TypeError of an upload: a promise, a stream, a form, an object', async () => {
    const sent = vi.fn((_, res) => res.writeHead(422).end())
    const client = createResourceClient(await start(sent))
    const empty = new Blob([])
    for (const value of [Promise.resolve(empty), empty.stream(), new FormData(), {}, 1, null, undefined]) {
      await expect(client.upload('/a', 'any', value as never)).rejects.toThrow(TypeError)
    }
    expect(sent).not.toHaveBeenCalled()
  })
})

it('throws a TypeError at the first attempt where there is no fetch', async () => {
  vi.stubGlobal('fetch', undefined)
  onTestFinished(() => void vi.unstubAllGlobals())
  const reading = createResourceClient('http://a.example').read('/a')
  await expect(reading).rejects.toThrow(new TypeError('There is no global fetch: set the option "fetch".'))
})
