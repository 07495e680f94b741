import { expect, it, vi } from 'vitest'
import { viewState } from '../../src/actions/resource-view.ts'
import type { StoredResource } from '../../src/stores/types.ts'

const resource: StoredResource = {
  path: '/notes/1',
  version: '1',
  contentType: 'application/json',
  size: 7,
  body: '{"a":1}',
}

it('a state that a hook copies, writes as JSON or compares has its value', () => {
  const state = viewState(resource, 100)
  expect({ ...state }.value).toEqual({ a: 1 })
  expect(JSON.parse(JSON.stringify(state))).toMatchObject({ path: '/notes/1', value: { a: 1 } })
  expect(Object.keys(state)).toEqual(['path', 'contentType', 'lastModified', 'size', 'deleted', 'value'])
})

it('a state is parsed once, and only when its value is read', () => {
  const parse = vi.spyOn(JSON, 'parse')
  try {
    const state = viewState(resource, 100)
    expect(state.size).toBe(7)
    expect(parse).not.toHaveBeenCalled()
    expect(state.value).toBe(state.value)
    expect(parse).toHaveBeenCalledTimes(1)
  } finally {
    parse.mockRestore()
  }
})
