import { expect, it } from 'vitest'
import { recallDocument, rememberDocument } from '../../src/actions/resource-view.ts'
import type { StoredResource } from '../../src/stores/types.ts'

it('keeps at most 1 MiB of documents that patches have made parsed: values take up to 21 times as much memory', () => {
  const states = Array.from({ length: 2000 }, (_, i): StoredResource => {
    const body = JSON.stringify({ i, text: 'x'.repeat(1000) })
    return { path: `/notes/${i}`, version: '1', contentType: 'application/json', size: body.length, body }
  })
  for (const state of states) rememberDocument(state, JSON.parse(state.body as string))
  const kept = states.filter((state) => recallDocument(state) !== undefined)
  expect(kept.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(1024 * 1024)
  // Those that were patched last are kept.
  expect(kept.length).toBeGreaterThan(400)
  expect(kept[0]).toBe(states.at(-kept.length))
})
