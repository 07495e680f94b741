import { describe, expect, it } from 'vitest'
import { splitProperties } from '../../src/actions/server-properties.ts'

describe('splitProperties', () => {
  it('takes properties off a value, and leaves the value as it is', () => {
    const value = { id: 1, title: 'T', file: { size: 5 } }
    expect(splitProperties(value, ['file', 'scan'])).toEqual({
      owned: { file: { size: 5 } },
      rest: { id: 1, title: 'T' },
    })
    expect(value).toEqual({ id: 1, title: 'T', file: { size: 5 } })
  })

  it.each([[[]], [['file']], [['toString', '__proto__']]])('copies no value that has none of them: %j', (names) => {
    const value = { id: 1, title: 'T' }
    const { owned, rest } = splitProperties(value, names)
    expect(owned).toEqual({})
    expect(rest).toBe(value)
  })
})
