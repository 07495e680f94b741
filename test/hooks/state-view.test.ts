import { expect, it, vi } from 'vitest'
import { viewChanged, viewReplaced } from '../../src/actions/changes.ts'
import type { Authorize } from '../../src/actions/hook-types.ts'
import { askAbout, StateView } from '../../src/actions/resource-view.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import type { StoredResource } from '../../src/stores/types.ts'

const resource: StoredResource = {
  path: '/notes/1',
  version: '1',
  contentType: 'application/json',
  size: 7,
  body: '{"a":1}',
}

it('a state that a hook copies, writes as JSON or compares has its value', () => {
  const state = new StateView(resource, 100)
  expect({ ...state }.value).toEqual({ a: 1 })
  expect(JSON.parse(JSON.stringify(state))).toMatchObject({ path: '/notes/1', value: { a: 1 } })
  expect(Object.keys(state)).toEqual(['path', 'contentType', 'lastModified', 'size', 'deleted', 'value'])
})

it('a state is parsed once, and only when its value is read', () => {
  const parse = vi.spyOn(JSON, 'parse')
  try {
    const state = new StateView(resource, 100)
    expect(state.size).toBe(7)
    expect(parse).not.toHaveBeenCalled()
    expect(state.value).toBe(state.value)
    expect(parse).toHaveBeenCalledTimes(1)
  } finally {
    parse.mockRestore()
  }
})

it('the state of a change has null where that is its content, and no value where its content is not JSON', () => {
  const empty: StoredResource = { ...resource, size: 4, body: 'null' }
  const broken: StoredResource = { ...resource, size: 1, body: '{' }
  expect([viewChanged(empty, 100).value, viewReplaced(empty, 100).value]).toEqual([null, null])
  expect(viewChanged(broken, 100).value).toBeUndefined()
  expect(() => viewReplaced(broken, 100).value).toThrow('not JSON')
  expect({ ...viewReplaced(resource, 100) }.value).toEqual({ a: 1 })
})

it('the state of a change is parsed once, where it has as many bytes as may be parsed, and not where it has more', () => {
  const state = viewChanged(resource, resource.size)
  expect(state.value).toEqual({ a: 1 })
  expect(state.value).toBe(state.value)
  expect(viewChanged(resource, resource.size - 1).value).toBeUndefined()
})

const large: StoredResource = {
  ...resource,
  body: {
    async *open() {
      yield Buffer.from('{"a":1}')
    },
  },
}

it.each<[string, Authorize]>([
  ['at once', (_principal, _request, state) => (state?.value as { a: number } | undefined)?.a === 1],
  ['later', async (_principal, _request, state) => (state?.value as { a: number } | undefined)?.a === 1],
  [
    'or throws',
    async (_principal, _request, state) => {
      const { a } = state!.value as { a: number }
      return a === 1
    },
  ],
])(
  'a hook that reads the value of content in pieces is asked again once it is there: it answers %s',
  async (_, authorize) => {
    const request = { signal: new AbortController().signal } as RequestView
    expect(await askAbout(large, 100, authorize, undefined, request)).toBe(true)
  },
)

it('a hook that does not read the value of content in pieces is asked once', async () => {
  const authorize = vi.fn(async () => true)
  const request = { signal: new AbortController().signal } as RequestView
  expect(await askAbout(large, 100, authorize, undefined, request)).toBe(true)
  expect(authorize).toHaveBeenCalledTimes(1)
})
