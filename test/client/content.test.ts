import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createResourceClient, expectSuccess, type ResourceFile } from '../../src/client.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { resources } from './resources.ts'
import { start } from './servers.ts'

const content = randomBytes(1_000_000)

async function open() {
  const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
  return { base, client: createResourceClient<typeof resources>(base) }
}

async function collect(file: ResourceFile): Promise<Buffer> {
  return Buffer.from(await (await file.blob()).arrayBuffer())
}

describe('upload and download', () => {
  it('keeps the bytes, the type and the tag', async () => {
    const { client } = await open()
    const blob = new Blob([content], { type: 'image/png' })
    const { resource } = expectSuccess(await client.upload('/files/{name}', { name: 'a' }, 'absent', blob))
    const { file } = expectSuccess(await client.download('/files/{name}', { name: 'a' }))
    expect(file).toMatchObject({ contentType: 'image/png', size: 1_000_000, offset: 0, entityTag: resource.entityTag })
    expect((await collect(file)).equals(content)).toBe(true)
    expect(await client.upload(resource, 'text', { contentType: 'text/plain' })).toMatchObject({ status: 204 })
    expect(await client.upload(file, 'late')).toMatchObject({ ok: false, status: 412 })
    expect(await client.download('/files/{name}', { name: 'b' })).toMatchObject({ ok: false, status: 404 })
  })

  it('says how much was sent and received', async () => {
    const { client } = await open()
    const sent: number[] = []
    const onProgress = (bytes: number): void => void sent.push(bytes)
    await client.upload('/files/{name}', { name: 'a' }, 'absent', content, { onProgress })
    expect(sent.length).toBeGreaterThan(10)
    expect(sent).toEqual([...sent].sort((a, b) => a - b))
    expect(sent.at(-1)).toBe(1_000_000)
    const received: [number, number | undefined][] = []
    const { file } = expectSuccess(
      await client.download('/files/{name}', { name: 'a' }, { onProgress: (...state) => void received.push(state) }),
    )
    await collect(file)
    expect(received.at(-1)).toEqual([1_000_000, 1_000_000])
  })

  it('replaces the file of an item, where its definition lets PUT store it', async () => {
    const albums = { '/albums': collection({ files: { cover: { replaceable: true } } }) }
    const base = await start(createResourceService(memoryStore(), { resources: albums, https: 'optional' }))
    const client = createResourceClient<typeof albums>(base)
    const { document } = expectSuccess(await client.create('/albums', { title: 'Engines' }))
    const blob = new Blob(['first'], { type: 'image/png' })
    expect(await client.upload('/albums/{id}/cover', { id: 1 }, 'absent', blob)).toMatchObject({ status: 201 })
    expect(await client.upload('/albums/{id}/cover', { id: 1 }, 'absent', blob)).toMatchObject({ status: 412 })
    const { file } = expectSuccess(await client.download('/albums/{id}/cover', { id: 1 }))
    expect((await collect(file)).toString()).toBe('first')
    expect(await client.upload(file, 'second')).toMatchObject({ status: 204 })
    expect(await client.upload(file, 'third')).toMatchObject({ status: 412 })
    const { document: changed } = expectSuccess(await client.read(document))
    expect(changed.value.cover).toMatchObject({ size: 6 })
  })

  it('creates items of raw content, and items with files by multipart', async () => {
    const { client } = await open()
    const blob = expectSuccess(await client.create('/blobs', new Uint8Array([1, 2, 3])))
    expect(blob.url).toMatch(/\/blobs\/[\da-f-]{36}$/)
    for await (const entry of client.list('/blobs')) expect(entry).toMatchObject({ size: 3 })
    const form = new FormData()
    form.set('name', 'Ada')
    form.set('photo', new Blob(['pixels'], { type: 'image/png' }), 'ada.png')
    const { document } = expectSuccess(await client.create('/people', form))
    expect(document.value).toMatchObject({ id: 1, name: 'Ada', photo: { name: 'ada.png', type: 'image/png', size: 6 } })
    const { file } = expectSuccess(await client.download('/people/{id}/photo', { id: 1 }))
    expect((await collect(file)).toString()).toBe('pixels')
  })

  it('continues a transfer that breaks where it broke (RFC 9110 §13.1.5)', async () => {
    const { base } = await open()
    const uploads = createResourceClient<typeof resources>(base)
    await uploads.upload('/files/{name}', { name: 'a' }, 'absent', content)
    const ranges: unknown[] = []
    const broken = await start(async (req, res) => {
      ranges.push([req.headers.range, req.headers['if-range'] !== undefined])
      await relayPart(base + req.url!, req.headers, res, 300_000)
    })
    const client = createResourceClient<typeof resources>(broken)
    const { file } = expectSuccess(await client.download('/files/{name}', { name: 'a' }))
    expect((await collect(file)).equals(content)).toBe(true)
    expect(ranges).toEqual([
      [undefined, false],
      ['bytes=300000-', true],
      ['bytes=600000-', true],
      ['bytes=900000-', true],
    ])
  })

  it('does not join two states: it throws where the content changed while it was transferred', async () => {
    const { base, client: uploads } = await open()
    await uploads.upload('/files/{name}', { name: 'a' }, 'absent', content)
    const broken = await start(async (req, res) => {
      await relayPart(base + req.url!, req.headers, res, 300_000, async () => {
        if (req.headers.range !== undefined) return
        await uploads.upload('/files/{name}', { name: 'a' }, 'any', randomBytes(1_000_000))
      })
    })
    const client = createResourceClient<typeof resources>(broken)
    const { file } = expectSuccess(await client.download('/files/{name}', { name: 'a' }))
    await expect(file.blob()).rejects.toThrow(/changed while it was transferred/)
  })

  it('continues the download of an earlier time, or begins anew where the state is another', async () => {
    const { client } = await open()
    const { resource } = expectSuccess(await client.upload('/files/{name}', { name: 'a' }, 'absent', content))
    const entityTag = resource.entityTag!
    const rest = await client.download(resource, { resume: { offset: 999_990, entityTag } })
    expect(rest).toMatchObject({ status: 206, file: { offset: 999_990, size: 1_000_000 } })
    expect((await collect(expectSuccess(rest).file)).equals(content.subarray(999_990))).toBe(true)
    const other = await client.download(resource, { resume: { offset: 10, entityTag: '"other"' } })
    expect(other).toMatchObject({ status: 200, file: { offset: 0 } })
    await expectSuccess(other).file.cancel()
    const complete = await client.download(resource, { resume: { offset: 1_000_000, entityTag } })
    expect(complete).toMatchObject({ status: 200, file: { offset: 0 } })
    await expectSuccess(complete).file.cancel()
  })

  it('stops with its signal, and when the consumer stops', async () => {
    const { client } = await open()
    await client.upload('/files/{name}', { name: 'a' }, 'absent', new Uint8Array(8_000_000))
    const controller = new AbortController()
    const options = { signal: controller.signal }
    const { file } = expectSuccess(await client.download('/files/{name}', { name: 'a' }, options))
    const read = async (): Promise<void> => {
      for await (const _ of file) controller.abort(new Error('enough'))
    }
    await expect(read()).rejects.toThrow('enough')
    const { file: second } = expectSuccess(await client.download('/files/{name}', { name: 'a' }))
    for await (const chunk of second) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
    for await (const chunk of second) expect(chunk).toBeUndefined()
  })
})

/** Sends some bytes of an answer, and breaks the connection. */
async function relayPart(
  url: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  res: ServerResponse,
  size: number,
  beforeBreak: () => Promise<void> = async () => undefined,
): Promise<void> {
  const { range, 'if-range': condition } = headers as Record<string, string | undefined>
  const response = await fetch(url, {
    headers: range === undefined ? {} : { Range: range, 'If-Range': condition! },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  res.writeHead(response.status, Object.fromEntries(response.headers))
  await new Promise((resolve) => res.write(bytes.subarray(0, size), resolve))
  await beforeBreak()
  await new Promise((resolve) => setTimeout(resolve, 50))
  res.destroy()
}
