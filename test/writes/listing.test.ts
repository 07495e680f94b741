import { afterEach, describe, expect, it } from 'vitest'
import { startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

describe('a listing', () => {
  it('is JSON whatever its members began with, and however large they are (row U6)', async () => {
    target = await startService({ limits: { parsedSize: 1000 } })
    const put = (path: string, body: string | Uint8Array) =>
      target!.send('PUT', path, { fields: { 'Content-Type': 'application/json' }, body })
    expect((await put('/things/1', '\ufeff{"a":1}')).field('etag')).toBeUndefined() // not the bytes that were sent
    await put('/things/2', '{"a":2}')
    await put('/things/3', `{"id":1},{"forged":"${'x'.repeat(2000)}"}`)
    const list = await target.send('GET', '/things')
    expect(list.json()).toEqual([
      { a: 1 },
      { a: 2 },
      expect.objectContaining({ href: '/things/3', type: 'application/json' }),
    ])
    expect((await target.send('GET', '/things/1')).text).toBe('{"a":1}')
  })
})
