import { afterEach, expect, it, vi } from 'vitest'
import { createResourceClient } from '../../src/client.ts'

afterEach(() => vi.unstubAllGlobals())

/** XMLHttpRequest of a browser that has followed a redirection, or none. */
function stubXhr(responseURL: string, onSend = (): void => {}, onAbort = (): void => {}): void {
  class Xhr {
    responseType = ''
    readonly status = 200
    readonly responseURL = responseURL
    readonly response = new TextEncoder().encode('{}').buffer
    readonly upload: { onprogress: ((event: { loaded: number }) => void) | null } = { onprogress: null }
    onload: (() => void) | null = null
    open(): void {}
    setRequestHeader(): void {}
    getResponseHeader = (name: string): string | null => (name === 'etag' ? '"1"' : null)
    send(body: Blob): void {
      onSend()
      this.upload.onprogress?.({ loaded: body.size })
      this.onload?.()
    }
    abort = onAbort
  }
  vi.stubGlobal('XMLHttpRequest', Xhr)
}

const upload = (onProgress: (sent: number) => void) =>
  createResourceClient('https://example.org').upload('/a', 'any', 'text', { onProgress })

it('an upload whose progress a page sees goes by XMLHttpRequest', async () => {
  stubXhr('https://example.org/a')
  const sent: number[] = []
  expect(await upload((bytes) => void sent.push(bytes))).toMatchObject({ ok: true, resource: { entityTag: '"1"' } })
  expect(sent).toEqual([4, 4])
})

it('an upload that a page sees redirected has no success (RFC 9110 §15.4)', async () => {
  stubXhr('https://example.org/login')
  await expect(upload(() => {})).rejects.toThrow('The write was redirected.')
})

it('an upload that is given up while it is sent is sent no further', async () => {
  const controller = new AbortController()
  const abort = vi.fn()
  stubXhr('https://example.org/a', () => controller.abort(new Error('enough')), abort)
  const { signal } = controller
  const sending = createResourceClient('https://example.org').upload('/a', 'any', 'text', { onProgress() {}, signal })
  await expect(sending).rejects.toThrow('enough')
  expect(abort).toHaveBeenCalledOnce()
})

it('an upload that is given up just after its token is there is not sent', async () => {
  for (let steps = 0; steps < 12; steps++) {
    const controller = new AbortController()
    const token = async (): Promise<string> => {
      void (async () => {
        for (let i = 0; i < steps; i++) await undefined
        controller.abort(new Error('enough'))
      })()
      return 'token'
    }
    let isSentLate = false
    stubXhr('https://example.org/a', () => {
      isSentLate = controller.signal.aborted
    })
    const client = createResourceClient('https://example.org', { token })
    const { signal } = controller
    await client.upload('/a', 'any', 'text', { onProgress() {}, signal }).catch(() => undefined)
    expect([steps, isSentLate]).toEqual([steps, false])
  }
})
