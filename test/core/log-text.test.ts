import { createServer } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { formatLogText } from '../../src/core/diagnostics.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'

const HOSTILE = [
  ...['\u0000', '\u0007', '\n', '\r', '\u001b[31m', '\u007f'],
  ...['\u0085', '\u009b31m', '\u009d', '\u061c', '\u200e', '\u200f', '\u2028', '\u2029', '\u202e', '\u2066', '\ufeff'],
  '\ud800',
]
// Nothing that moves the cursor, breaks the line or turns the direction of text.
const SAFE = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]*$/u

describe('formatLogText', () => {
  it('escapes controls, changes of direction and separators, and leaves letters of all languages', () => {
    for (const text of HOSTILE) expect(formatLogText(`a${text}b`)).toMatch(SAFE)
    expect(formatLogText('a\u009b\u202e\ud800')).toBe('a\\u{9b}\\u{202e}\\u{d800}')
    for (const text of ['/a b/%2F"', '/日本/é', '/😀', '']) expect(formatLogText(text)).toBe(text)
  })
})

describe('text of a client', () => {
  let host: RunningHost | undefined
  afterEach(async () => {
    vi.restoreAllMocks()
    await host?.close()
  })

  /** Paths with what a target may hold. */
  const targets = ['\u0085', '\u009b31m', '\u061c', '\u202e', '\u2028', '\u2066'].map(
    (text) => `/x${encodeURIComponent(text)}`,
  )

  it('is escaped in the line that explains an answer', async () => {
    const lines: string[] = []
    const service = createResourceService(memoryStore(), { explain: (line) => lines.push(line) })
    host = await runServer(createServer(service))
    for (const path of [...targets, '/%zz']) await host.send({ path })
    await host.send({ method: 'PUT', path: '/a', headers: { 'Content-Type': 'text/x; a="\u009b"' }, body: 'x' })
    await service.close()
    expect(lines).toHaveLength(targets.length + 2)
    for (const line of lines) expect(line).toMatch(SAFE)
    expect(lines.join()).toContain('/x\\u{9b}31m')
  })

  it('is escaped in the lines about a failure, also where the failure names it', async () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {})
    const store = memoryStore()
    const fail = (path: string): never => {
      throw new Error(`Cannot read ${path}`, { cause: { path } })
    }
    const service = createResourceService({ ...store, read: fail, list: fail })
    host = await runServer(createServer(service))
    for (const path of targets) expect((await host.send({ path })).status).toBe(500)
    expect(written).toHaveBeenCalledTimes(targets.length)
    for (const [text, ...more] of written.mock.calls) {
      expect(more).toEqual([])
      for (const line of String(text).split('\n')) expect(line).toMatch(SAFE)
      expect(text).toContain('Cannot read /x\\u{')
    }
  })
})
