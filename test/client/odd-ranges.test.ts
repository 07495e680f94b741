import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createResourceClient, expectSuccess, ResponseError } from '../../src/client.ts'
import { start } from './servers.ts'

type Send = (res: ServerResponse) => void

const range = (headers: Record<string, string>, content: string): Send => {
  return (res) => res.writeHead(206, { ETag: '"1"', 'Content-Range': 'bytes 3-5/6', ...headers }).end(content)
}

/** Breaks the response of which three of six bytes were sent. */
let breakOff = (): unknown => undefined

/** Sends three of six bytes first, and answers a range by a function. */
const startBroken = (sendRange: Send): Promise<string> =>
  start((req, res) => {
    if (req.headers.range !== undefined) return sendRange(res)
    res.writeHead(200, { ETag: '"1"', 'Content-Length': 6 })
    if (req.method === 'HEAD') return res.end()
    breakOff = () => res.destroy()
    return res.write('abc')
  })

/** A service that has moved as a whole. */
const startMoved = (target: string): Promise<string> =>
  start((req, res) => res.writeHead(308, { Location: `${target}${req.url}` }).end())

/** Reads the text of a download that breaks once its first bytes have been read. */
async function downloadText(base: string): Promise<string> {
  const { file } = expectSuccess(await createResourceClient(base).download('/a', { onProgress: () => breakOff() }))
  return (await file.blob()).text()
}

describe('a broken download, where the server answers the range oddly', () => {
  it('continues with a range of the same tag', async () => {
    expect(await downloadText(await startBroken(range({}, 'def')))).toBe('abcdef')
  })

  it('continues with a range whose unit is in capitals (RFC 9110 §14.1)', async () => {
    const headers = { 'Content-Range': 'Bytes 3-5/6' }
    expect(await downloadText(await startBroken(range(headers, 'def')))).toBe('abcdef')
  })

  it('continues where the service has moved as a whole, and joins nothing else there (RFC 9110 §15.4.9)', async () => {
    expect(await downloadText(await startMoved(await startBroken(range({}, 'def'))))).toBe('abcdef')
    const changed = await startMoved(await startBroken(range({ ETag: '"2"' }, 'XYZ')))
    await expect(downloadText(changed)).rejects.toThrow(/changed while it was transferred/)
  })

  it('passes over what it has where the range is ignored, as by a cache in front (RFC 9110 §14.2)', async () => {
    const whole: Send = (res) => res.writeHead(200, { ETag: '"1"', 'Content-Length': 6 }).end('abcdef')
    expect(await downloadText(await startBroken(whole))).toBe('abcdef')
    const byBytes: Send = (res) => {
      res.writeHead(200, { ETag: '"1"' })
      for (const byte of 'abcdef') res.write(byte)
      res.end()
    }
    expect(await downloadText(await startBroken(byBytes))).toBe('abcdef')
  })

  it('gives up where the whole is sent repeatedly, and never more of it than is there', async () => {
    let responses = 0
    const base = await startBroken((res) => {
      responses++
      res.writeHead(200, { ETag: '"1"', 'Content-Length': 6 }).write('abc', () => setTimeout(() => res.destroy(), 20))
    })
    await expect(downloadText(base)).rejects.toThrow('The transfer broke.')
    expect(responses).toBe(5)
  })

  it.each<[string, Send]>([
    ['a whole of another tag', (res) => res.writeHead(200, { ETag: '"2"' }).end('UVWXYZ')],
    ['a whole without a tag', (res) => res.writeHead(200).end('abcdef')],
    ['a range that says not where it begins', range({ 'Content-Range': 'bytes' }, 'def')],
    ['another tag, since the server ignores If-Range', range({ ETag: '"2"' }, 'XYZ')],
    ['a weak tag', range({ ETag: 'W/"1"' }, 'XYZ')],
    ['another position', range({ 'Content-Range': 'bytes 2-5/6' }, 'WXYZ')],
  ])('does not join content of %s (RFC 9110 §15.3.7.3)', async (_, sendRange) => {
    await expect(downloadText(await startBroken(sendRange))).rejects.toThrow(/changed while it was transferred/)
  })

  it('does not join content without a tag', async () => {
    const base = await startBroken((res) => res.writeHead(206, { 'Content-Range': 'bytes 3-5/6' }).end('XYZ'))
    await expect(downloadText(base)).rejects.toThrow(/changed while it was transferred/)
  })

  it('does not take more bytes than the content has', async () => {
    await expect(downloadText(await startBroken(range({}, 'defghi')))).rejects.toThrow(
      /changed while it was transferred/,
    )
  })
})

describe('a download', () => {
  it('is whole where its content is coded, whose length is not that of what is read', async () => {
    const coded = gzipSync('abc'.repeat(1000))
    const base = await start((_req, res) => {
      res.writeHead(200, { ETag: '"1"', 'Content-Encoding': 'gzip', 'Content-Length': coded.length }).end(coded)
    })
    expect(await downloadText(base)).toBe('abc'.repeat(1000))
  })

  it('is not continued where its content is coded: ranges count the bytes on the wire', async () => {
    const coded = gzipSync(randomBytes(100_000))
    const ranges: (string | undefined)[] = []
    const base = await start((req, res) => {
      ranges.push(req.headers.range)
      res.writeHead(200, { ETag: '"1"', 'Content-Encoding': 'gzip', 'Content-Length': coded.length })
      res.write(coded.subarray(0, 50_000), () => setTimeout(() => res.destroy(), 20))
    })
    await expect(downloadText(base)).rejects.toThrow('The transfer broke.')
    expect(ranges).toEqual([undefined])
  })

  it('is not continued where its tag is weak, which does not vouch for bytes (RFC 9110 §13.1.5)', async () => {
    const ranges: (string | undefined)[] = []
    const base = await start((req, res) => {
      ranges.push(req.headers.range)
      res.writeHead(200, { ETag: 'W/"1"', 'Content-Length': 6 }).write('abc', () => setTimeout(() => res.destroy(), 20))
    })
    await expect(downloadText(base)).rejects.toThrow('The transfer broke.')
    expect(ranges).toEqual([undefined])
  })

  it('goes on however often it breaks, as long as each time brings some bytes', async () => {
    const text = 'abcdefghij'
    const base = await start((req, res) => {
      const from = Number(/\d+/.exec(req.headers.range ?? '0')![0])
      const part = { ETag: '"1"', 'Content-Length': text.length - from }
      if (from === 0) res.writeHead(200, part)
      else res.writeHead(206, { ...part, 'Content-Range': `bytes ${from}-9/10` })
      res.write(text[from]!, () => setTimeout(() => res.destroy(), 20))
    })
    expect(await downloadText(base)).toBe(text)
  })
})

describe('the download of an earlier time', () => {
  const download = async (base: string) => {
    const resume = { offset: 3, entityTag: '"1"' }
    const { file } = expectSuccess(await createResourceClient(base).download('/a', { resume }))
    return { offset: file.offset, entityTag: file.entityTag, text: await (await file.blob()).text() }
  }

  it('continues where the service has moved as a whole', async () => {
    const base = await startMoved(await startBroken(range({}, 'def')))
    expect(await download(base)).toEqual({ offset: 3, entityTag: '"1"', text: 'def' })
  })

  it.each<[string, Record<string, string>]>([
    ['of another state, since it ignores If-Range', { ETag: '"2"' }],
    ['that was not asked for', { 'Content-Range': 'bytes 2-5/6' }],
  ])('begins anew where the server sends a range %s', async (_, headers) => {
    const base = await start((req, res) => {
      if (req.headers.range !== undefined) return range(headers, 'XYZ')(res)
      return res.writeHead(200, { ETag: '"2"' }).end('UVWXYZ')
    })
    expect(await download(base)).toEqual({ offset: 0, entityTag: '"2"', text: 'UVWXYZ' })
  })
})

describe('a problem document', () => {
  it('is without its type, title and detail where they are not text (RFC 9457 §3.1)', async () => {
    const base = await start((_, res) => {
      const problem = { type: 5, title: ['Not Found'], detail: { toString: 1 }, balance: 0 }
      res.writeHead(404, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify(problem))
    })
    const refused = await createResourceClient(base).read('/a')
    const problem = { type: 'about:blank', status: 404, balance: 0 }
    expect(refused).toEqual({ ok: false, status: 404, problem })
    expect(() => expectSuccess(refused)).toThrow(new ResponseError(404, problem, '404: refused'))
  })

  it('has the status of the response where it names another one (RFC 9457 §3.1.2)', async () => {
    const base = await start((_, res) => {
      res.writeHead(404, { 'Content-Type': 'application/problem+json' }).end('{"status":500}')
    })
    const refused = await createResourceClient(base).read('/a')
    expect(refused).toEqual({ ok: false, status: 404, problem: { type: 'about:blank', status: 404 } })
  })
})
