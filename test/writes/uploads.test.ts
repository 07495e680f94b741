import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collection } from '../../src/index.ts'
import type { Answer } from '../support/answer.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { watchStaged } from '../support/watch-staged.ts'
import {
  multipartOf,
  type Part,
  sendBytes,
  startDemo,
  startService,
  type Target,
  uploadOf,
  waitFor,
} from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

async function countUploads(): Promise<number> {
  return (await demo.store.list('/uploads', { limit: 1000 })).items.length
}

const isReady = (answer: Answer): boolean => answer.json().state === 'ready'
const title: Part = { name: 'title', content: 'T' }
const file: Part = { name: 'file', filename: 'a.txt', type: 'text/plain', content: 'bytes' }

describe('POST of an upload', () => {
  it('answers 202 with the item and no content; the item goes from pending to ready (interface POST 4, rows F13, H168)', async () => {
    const answer = await demo.send('POST', '/uploads', uploadOf('bytes', 'a.txt', 'text/plain'))
    const location = answer.field('location')!
    expect([answer.status, answer.text, answer.field('content-length')]).toEqual([202, '', '0'])
    expect(location).toMatch(/^\/uploads\/[1-9]\d*$/)
    const first = await demo.send('GET', location)
    expect(['pending', 'ready']).toContain(first.json().state)
    if (first.json().state === 'pending') expect(first.field('retry-after')).toBe('1')
    const item = await waitFor(() => demo.send('GET', location), isReady)
    const id = Number(location.slice('/uploads/'.length))
    expect(item.json()).toEqual({
      id,
      title: 'T',
      state: 'ready',
      file: { name: 'a.txt', type: 'text/plain', size: 5 },
    })
    expect(item.field('retry-after')).toBeUndefined()
    const bytes = await demo.send('GET', `${location}/file`)
    expect([bytes.status, bytes.text, bytes.field('content-type')]).toEqual([200, 'bytes', 'text/plain'])
  })

  it('takes the parts in either order (row F5)', async () => {
    const answer = await demo.send('POST', '/uploads', multipartOf([file, title]))
    expect(answer.status).toBe(202)
    expect((await demo.send('GET', `${answer.field('location')}/file`)).text).toBe('bytes')
  })

  it.each([
    ['../../x.txt', 'x.txt'],
    ['C:\\dir\\y.txt', 'y.txt'],
    ['日本.txt', '日本.txt'],
    ['a%22b%0D%0A.txt', undefined],
    ['.htaccess', undefined],
    ['\u202egpj.exe', undefined],
    ['n'.repeat(10_000), undefined],
  ])('keeps a file name as a name only: %s (rows F4, D5, D6, threats 77, 118)', async (filename, expected) => {
    const answer = await demo.send('POST', '/uploads', uploadOf('x', filename))
    expect(answer.status).toBe(202)
    const { name } = (await demo.send('GET', answer.field('location')!)).json().file
    if (expected !== undefined) expect(name).toBe(expected)
    expect(name).not.toMatch(/[/\\\u0000-\u001f\u202e]/)
    expect(name.length).toBeLessThanOrEqual(255)
    const bytes = await demo.send('GET', `${answer.field('location')}/file`)
    expect([bytes.status, bytes.field('content-disposition')?.includes('filename')]).toEqual([200, true])
  })

  it('serves what was uploaded so that it cannot act as a page (threats 114, 115)', async () => {
    const answer = await demo.send('POST', '/uploads', uploadOf('<script>', 'x.html', 'text/html'))
    const bytes = await demo.send('GET', `${answer.field('location')}/file`)
    expect(bytes.field('content-disposition')).toContain('attachment')
    expect(bytes.field('content-security-policy')).toContain("default-src 'none'")
  })

  const cut = (options: ReturnType<typeof uploadOf>, bytes: number) => ({
    ...options,
    body: (options.body as Buffer).subarray(0, -bytes),
  })
  it.each([
    ['no title', 422, multipartOf([file]), '/title'],
    ['an empty title', 422, multipartOf([{ ...title, content: '' }, file]), '/title'],
    ['no file', 422, multipartOf([title]), '/file'],
    ['a file without a file name', 422, multipartOf([title, { name: 'file', content: 'x' }]), '/file'],
    ['two files', 422, multipartOf([title, file, file]), '/file'],
    ['a file without a definition', 422, multipartOf([title, file, { ...file, name: 'other' }]), '/other'],
    ['a state', 422, multipartOf([title, file, { name: 'state', content: 'ready' }]), '/state'],
    ['an id', 422, multipartOf([title, file, { name: 'id', content: '1' }]), '/id'],
    ['a member __proto__', 400, multipartOf([title, file, { name: '__proto__', content: 'x' }]), '/__proto__'],
    ['no part', 422, multipartOf([]), '/file'],
    ['no closing boundary (row F9)', 400, cut(uploadOf(), 4), undefined],
    ['content cut inside the file (threat 70)', 400, cut(uploadOf('x'.repeat(1000)), 500), undefined],
    ['no content', 400, { ...uploadOf(), body: '' }, undefined],
    ['JSON (row H178)', 415, { fields: { 'Content-Type': 'application/json' }, body: '{"title":"x"}' }, undefined],
    ['no boundary (row H31)', 400, { ...uploadOf(), fields: { 'Content-Type': 'multipart/form-data' } }, undefined],
    [
      'a boundary of 71 characters (row F1)',
      400,
      { ...uploadOf(), fields: { 'Content-Type': `multipart/form-data; boundary=${'b'.repeat(71)}` } },
      undefined,
    ],
  ] as const)('with %s is refused with %i and leaves nothing (I7)', async (_what, status, options, pointer) => {
    const before = await countUploads()
    // Of unknown length it is read as a stream; small and of known length, in one go.
    for (const chunked of [false, true]) {
      const answer = await demo.send('POST', '/uploads', { ...options, chunked })
      expect(answer.status).toBe(status)
      if (pointer !== undefined) expect(answer.json().errors[0].pointer).toBe(pointer)
      if (status === 415) expect(answer.field('accept-post')).toBe('multipart/form-data')
    }
    expect(await countUploads()).toBe(before)
  })

  it('says of a file what the definition makes of it', async () => {
    const resources = { '/forms': collection({ files: { file: { describe: ({ name, size }) => ({ name, size }) } } }) }
    const target = await startService({ resources })
    for (const chunked of [false, true]) {
      const answer = await target.send('POST', '/forms', { ...multipartOf([title, file]), chunked })
      expect([answer.status, answer.json()]).toEqual([
        201,
        { id: chunked ? 2 : 1, title: 'T', file: { name: 'a.txt', size: 5 } },
      ])
    }
    await target.close()
  })

  it('says nothing of a file of which the definition makes nothing', async () => {
    const resources = { '/forms': collection({ files: { file: { describe: () => undefined } } }) }
    const target = await startService({ resources })
    const answer = await target.send('POST', '/forms', multipartOf([title, file]))
    expect([answer.status, answer.json()]).toEqual([201, { id: 1, title: 'T' }])
    expect((await target.send('GET', '/forms/1/file')).text).toBe('bytes')
    await target.close()
  })

  it('refuses a transfer encoding of a part (row F7), and a part charset it cannot read (threat 72)', async () => {
    const part = (head: string, content: string): string =>
      `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`
    for (const [body, status] of [
      [part('name="title"\r\nContent-Transfer-Encoding: base64', 'VA=='), 400],
      [part('name="title"\r\nContent-Type: text/plain; charset=utf-7', 'T'), 415],
      [part('nome="title"', 'T'), 400],
      ['--b\r\n\r\nT\r\n', 400],
    ] as const) {
      const fields = { 'Content-Type': 'multipart/form-data; boundary=b' }
      const rest = `${part('name="file"; filename="a"', 'x')}--b--\r\n`
      expect((await demo.send('POST', '/uploads', { fields, body: body + rest })).status).toBe(status)
    }
  })

  it('has limits that are exact: 110 parts, 100 fields, 64 KiB each (row F10, threats 71, 75)', async () => {
    const fields = (count: number): Part[] =>
      Array.from({ length: count }, (_, index) => ({ name: `f${index}`, content: 'x' }))
    expect((await demo.send('POST', '/uploads', multipartOf([title, file, ...fields(99)]))).status).toBe(202)
    expect((await demo.send('POST', '/uploads', multipartOf([title, file, ...fields(100)]))).status).toBe(413)
    const big = (size: number): Part => ({ name: 'big', content: 'x'.repeat(size) })
    expect((await demo.send('POST', '/uploads', multipartOf([title, file, big(65536)]))).status).toBe(202)
    expect((await demo.send('POST', '/uploads', multipartOf([title, file, big(65537)]))).status).toBe(413)
    const name = (length: number): Part => ({ name: 'n'.repeat(length), content: 'x' })
    expect((await demo.send('POST', '/uploads', multipartOf([title, file, name(200)]))).status).toBe(202)
    expect((await demo.send('POST', '/uploads', multipartOf([title, file, name(201)]))).status).toBe(400)
    const elapsed = startProcessorClock()
    const flood = await demo.send('POST', '/uploads', multipartOf([title, ...fields(20_000)]))
    expect([flood.status, elapsed() < 2000]).toEqual([413, true])
  })

  it('of an empty file is an upload like any other', async () => {
    const answer = await demo.send('POST', '/uploads', uploadOf(''))
    const item = await waitFor(() => demo.send('GET', answer.field('location')!), isReady)
    expect(item.json().file.size).toBe(0)
    const bytes = await demo.send('GET', `${answer.field('location')}/file`)
    expect([bytes.status, bytes.field('content-length')]).toEqual([200, '0'])
  })

  it('offers only what an item can do (rows H48, H73)', async () => {
    const { length } = (await demo.send('POST', '/uploads', uploadOf())).field('location')!
    expect(length).toBeGreaterThan(0)
    for (const [method, path, allow] of [
      ['PUT', '/uploads/1', 'GET, HEAD, DELETE, OPTIONS'],
      ['PATCH', '/uploads/1', 'GET, HEAD, DELETE, OPTIONS'],
      ['PUT', '/uploads/1/file', 'GET, HEAD, OPTIONS'],
      ['DELETE', '/uploads/1/file', 'GET, HEAD, OPTIONS'],
    ] as const) {
      const answer = await demo.send(method, path, { body: 'x' })
      expect([method, path, answer.status, answer.field('allow')]).toEqual([method, path, 405, allow])
    }
    expect((await demo.send('GET', '/uploads/1/other')).status).toBe(404)
  })

  it('waits for 100 Continue only when nothing speaks against it (rows H76, H77)', async () => {
    const { body, fields } = uploadOf()
    const type = (fields as Record<string, string>)['Content-Type']
    const head = (contentType: string): string =>
      `POST /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Type: ${contentType}\r\nContent-Length: ${(body as Buffer).length}\r\n\r\n`
    expect((await sendBytes(demo.port, head('application/json'))).status).toBe(415)
    expect((await sendBytes(demo.port, head(type!), body!)).status).toBe(202)
  })
})

it('no file of a form takes the place of the id', async () => {
  const target = await startService({ resources: { '/jobs': collection({ create: 'accepted' }) } })
  const answer = await target.send('POST', '/jobs', multipartOf([title, { ...file, name: 'id' }]))
  expect([answer.status, answer.json().errors[0].pointer]).toEqual([422, '/id'])
  await target.close()
})

it('a form that is refused leaves none of its files behind, and one that is taken gives none up', async () => {
  const { store, open } = watchStaged()
  const target = await startService({ resources: { '/photos': collection({ files: { a: {}, b: {} } }) } }, store)
  const large = (name: string): Part => ({ ...file, name, content: 'x'.repeat(100_000) })
  for (const parts of [
    [large('a'), large('c')],
    [large('a'), large('a')],
    [large('a'), { name: 'id', content: '1' }],
  ]) {
    expect((await target.send('POST', '/photos', multipartOf(parts))).status).toBe(422)
    expect(open.size).toBe(0)
  }
  expect((await target.send('POST', '/photos', multipartOf([large('a')]))).status).toBe(201)
  expect(open.size).toBe(1)
  await target.close()
})
