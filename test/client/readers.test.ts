import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createResourceClient, expectSuccess, type Fetch } from '../../src/client.ts'

type Answered = Awaited<ReturnType<Fetch>>

/** A fetch that gives one answer after another, and says which contents were cancelled. */
function answerInTurn(...answers: readonly (Partial<Answered> & { readonly pieces?: readonly (string | Error)[] })[]) {
  const requests: string[] = []
  const cancelled: number[] = []
  const fetch: Fetch = async (url, { method, headers }) => {
    const turn = requests.push(`${method} ${headers['Range'] ?? url.slice(-2)}`) - 1
    const { pieces = [], ...answer } = answers[turn]!
    const rest = [...pieces]
    const read = async () => {
      const piece = rest.shift()
      if (piece instanceof Error) throw piece
      return piece === undefined ? { done: true } : { done: false, value: new TextEncoder().encode(piece) }
    }
    const cancel = async () => void cancelled.push(turn)
    return {
      status: 200,
      headers: new Headers(),
      body: { getReader: () => ({ read, cancel }) },
      text: async () => '',
      ...answer,
    }
  }
  return { requests, cancelled, client: createResourceClient('https://example.org', { fetch, retries: 0 }) }
}

const whole = (size: number, more = {}) => ({
  headers: new Headers({ ETag: '"1"', 'Content-Length': `${size}`, ...more }),
})
const part = (first: number, size: number) => ({
  status: 206,
  headers: new Headers({ ETag: '"1"', 'Content-Range': `bytes ${first}-${size - 1}/${size}` }),
})
const textOf = async (content: { blob(): Promise<Blob> }) => (await content.blob()).text()

describe('the content of a download', () => {
  it('is cancelled where it broke, before the rest is asked for', async () => {
    const { client, requests, cancelled } = answerInTurn(
      { ...whole(4), pieces: ['ab', new Error('silent')] },
      { ...part(2, 4), pieces: ['cd'] },
    )
    const { file } = expectSuccess(await client.download('/a'))
    expect(await textOf(file)).toBe('abcd')
    expect([requests, cancelled]).toEqual([
      ['GET /a', 'GET bytes=2-'],
      [0, 1],
    ])
  })

  it('is not continued where it is coded, since positions in it are not those of what was read', async () => {
    const { client, requests } = answerInTurn({
      ...whole(4, { 'Content-Encoding': 'gzip' }),
      pieces: ['ab', new Error('broken')],
    })
    const { file } = expectSuccess(await client.download('/a'))
    await expect(textOf(file)).rejects.toThrow('The transfer broke.')
    expect(requests).toEqual(['GET /a'])
  })

  it('has no size that could be compared with what is read where it is coded', async () => {
    const { client } = answerInTurn({ ...whole(2, { 'Content-Encoding': 'gzip' }), pieces: ['abc'] })
    const received: unknown[] = []
    const onProgress = (...state: unknown[]): void => void received.push(state)
    const { file } = expectSuccess(await client.download('/a', { onProgress }))
    expect([await textOf(file), file.size, received]).toEqual(['abc', undefined, [[3, undefined]]])
  })

  it('is joined to the tag of its resource only while the target of the redirect has the same content', async () => {
    const moved = (signature: number, tag: string, pieces: string[] = []) => ({
      ...{ redirected: true, url: `https://bucket.example/a?signature=${signature}`, pieces },
      headers: new Headers({ ETag: tag, 'Content-Length': '2' }),
    })
    const own = { headers: new Headers({ ETag: '"1"', 'Content-Length': '2' }) }
    const same = answerInTurn(moved(1, '"t1"', ['ab']), own, moved(2, '"t1"'))
    const { file } = expectSuccess(await same.client.download('/a'))
    expect([await textOf(file), file.entityTag]).toEqual(['ab', '"1"'])
    const other = answerInTurn(moved(1, '"t1"', ['ab']), own, moved(2, '"t2"'))
    await expect(other.client.download('/a')).rejects.toThrow('The content changed while it was transferred.')
    expect(other.cancelled).toEqual([0])
  })

  it('ends with the refusal where the rest is refused, as with a token that has expired', async () => {
    const { client } = answerInTurn({ ...whole(4), pieces: ['ab', new Error('broken')] }, { status: 401 })
    const { file } = expectSuccess(await client.download('/a'))
    await expect(textOf(file)).rejects.toMatchObject({ status: 401 })
  })

  it('is asked for five times more where it breaks without a byte in between', async () => {
    const nothing = { ...part(2, 4), pieces: [new Error('broken')] }
    const pieces = ['ab', new Error('broken')]
    const { client, requests } = answerInTurn({ ...whole(4), pieces }, ...Array.from({ length: 6 }, () => nothing))
    const { file } = expectSuccess(await client.download('/a'))
    await expect(textOf(file)).rejects.toThrow('The transfer broke.')
    expect(requests).toHaveLength(6)
  })

  it('is over once it is given up, also where it was not whole', async () => {
    const { client, requests } = answerInTurn({ ...whole(4), pieces: [] }, part(0, 4))
    const { file } = expectSuccess(await client.download('/a'))
    await file.cancel()
    expect(await textOf(file)).toBe('')
    expect(requests).toEqual(['GET /a'])
  })

  it('is cancelled where it is another part than the one that was asked for', async () => {
    const { client, cancelled } = answerInTurn({ ...part(1, 4), pieces: ['bcd'] }, { ...whole(4), pieces: ['abcd'] })
    const { file } = expectSuccess(await client.download('/a', { resume: { offset: 2, entityTag: '"1"' } }))
    expect(cancelled).toEqual([0])
    expect([await textOf(file), file.offset]).toEqual(['abcd', 0])
  })

  it('is cancelled where its status is none of a download, or a part that was not asked for', async () => {
    for (const answers of [[{ status: 203 }], [part(0, 4), part(0, 4)]]) {
      const { client, cancelled } = answerInTurn(...answers)
      const { signal } = new AbortController()
      await expect(client.download('/a', { signal })).rejects.toMatchObject({ status: answers[0]!.status })
      expect(cancelled).toEqual([...answers.keys()])
      expect(getEventListeners(signal, 'abort')).toEqual([])
    }
  })

  const redirected = (address: string) => ({ redirected: true, url: `https://files.example${address}` })

  it('is cancelled where the service refuses what its redirection led to', async () => {
    const { client, cancelled } = answerInTurn(
      { ...whole(4), ...redirected('/x?1'), pieces: ['abcd'] },
      { status: 404 },
      { ...whole(4), ...redirected('/x?2') },
    )
    expect(await client.download('/a')).toMatchObject({ ok: false, status: 404 })
    expect(cancelled).toEqual([0])
  })

  it('is refused where the redirection has led elsewhere since, to content with the same tag', async () => {
    const { client, cancelled } = answerInTurn({ ...whole(4), ...redirected('/x?1'), pieces: ['abcd'] }, whole(4), {
      ...whole(4),
      ...redirected('/y?2'),
    })
    await expect(client.download('/a')).rejects.toThrow('changed while it was transferred')
    expect(cancelled).toEqual([0])
  })

  it('is refused where what the redirection has led to is gone since, and had no tag', async () => {
    const content = { ...redirected('/x?1'), pieces: ['abcd'] }
    const { client, cancelled } = answerInTurn(content, whole(4), { status: 404, ...redirected('/x?2') })
    await expect(client.download('/a')).rejects.toThrow('changed while it was transferred')
    expect(cancelled).toEqual([0])
  })
})
