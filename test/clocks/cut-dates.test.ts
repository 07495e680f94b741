import { describe, expect, it } from 'vitest'
import { conditional } from '../../src/handlers/conditional.ts'
import { patch } from '../../src/handlers/patch.ts'
import { range } from '../../src/handlers/range.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { StoredResource } from '../../src/stores/types.ts'
import { HOSTS, serve } from '../handlers/serve.ts'
import { startService } from '../writes/support.ts'

const NOW = Date.UTC(2026, 5, 15, 10)
/** The clock of the machine that wrote is two hours ahead. */
const CHANGED = NOW + 7_200_000
const L = new Date(CHANGED).toUTCString()
const CUT = new Date(NOW).toUTCString()
const TEXT = 'abc'
const now = () => NOW

// Whether it changed once only in that second is what its owner knows, or does not.
describe.each([false, true, undefined])('a date that is to come, dateIsStrong %s (RFC 9110 §8.8.2)', (dateIsStrong) => {
  const state = { lastModified: CHANGED, dateIsStrong }
  const holds = dateIsStrong === true

  it.each(HOSTS)('is sent as now, and judged as it is, by conditional in %s', async (_, mount) => {
    const send = await serve(mount([conditional(() => state, { now })], () => TEXT))
    expect((await send('GET', '/')).field('last-modified')).toBe(CUT)
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      expect((await send(method, '/', { 'If-Unmodified-Since': L })).status).toBe(holds ? 200 : 412)
      expect((await send(method, '/', { 'If-Unmodified-Since': CUT })).status).toBe(412)
    }
    expect((await send('GET', '/', { 'If-Modified-Since': L })).status).toBe(holds ? 304 : 200)
    expect((await send('GET', '/', { 'If-Modified-Since': CUT })).status).toBe(200)
  })

  it.each(HOSTS)('is sent as now, and judged as it is, by range in %s', async (_, mount) => {
    const source = { contentType: 'text/plain', content: TEXT }
    const alone = [range(() => ({ ...state, ...source }), { now })]
    const behind = [conditional(() => state, { now }), range(() => source, { now })]
    for (const pieces of [alone, behind]) {
      const send = await serve(mount(pieces))
      expect((await send('GET', '/')).field('last-modified')).toBe(CUT)
      const part = { Range: 'bytes=0-0' }
      expect((await send('GET', '/', { ...part, 'If-Range': L })).status).toBe(holds ? 206 : 200)
      expect((await send('GET', '/', { ...part, 'If-Range': CUT })).status).toBe(200)
      expect((await send('GET', '/', { 'If-Modified-Since': L })).status).toBe(holds ? 304 : 200)
      expect((await send('GET', '/', { 'If-Modified-Since': CUT })).status).toBe(200)
    }
  })

  it('is sent as now, and judged as it is, by patch', async () => {
    const piece = patch({ read: () => ({ ...state, document: {} }), write: () => state, now })
    const send = await serve(piece)
    const merge = (date?: string) =>
      send(
        'PATCH',
        '/',
        { 'Content-Type': 'application/merge-patch+json', ...(date !== undefined && { 'If-Unmodified-Since': date }) },
        '{"a":1}',
      )
    expect((await merge()).field('last-modified')).toBe(CUT)
    expect((await merge(L)).status).toBe(holds ? 200 : 412)
    expect((await merge(CUT)).status).toBe(412)
  })

  it('is sent as now, and judged as it is, by the service', async () => {
    const sound = memoryStore()
    const date = (found: unknown) => ({ ...(found as StoredResource), ...state, entityTag: '' })
    const store = { ...sound, read: async (path: string) => date(await sound.read(path)) }
    const target = await startService({ now }, store)
    try {
      await sound.write('/a', { contentType: 'text/plain', body: TEXT }, { expect: 'any' })
      const get = (fields = {}) => target.send('GET', '/a', { fields })
      expect((await get()).field('last-modified')).toBe(CUT)
      expect((await get({ 'If-Modified-Since': CUT })).status).toBe(200)
      expect((await get({ 'If-Modified-Since': L })).status).toBe(holds ? 304 : 200)
      expect((await get({ Range: 'bytes=0-0', 'If-Range': L })).status).toBe(holds ? 206 : 200)
      expect((await get({ Range: 'bytes=0-0', 'If-Range': CUT })).status).toBe(200)
      const put = (date: string) =>
        target.send('PUT', '/a', { fields: { 'Content-Type': 'text/plain', 'If-Unmodified-Since': date }, body: 'x' })
      expect((await put(CUT)).status).toBe(412)
      expect((await put(L)).status).toBe(holds ? 204 : 412)
    } finally {
      await target.close()
    }
  })
})
