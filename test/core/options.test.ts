import { describe, expect, it } from 'vitest'
import { readOptions } from '../../src/core/options.ts'

interface Options {
  readonly a?: number
  readonly b?: string
}

describe('readOptions', () => {
  const read = (options: object | undefined) => readOptions<Options>('piece', options, ['a', 'b'])

  it('copies what is set, so that later changes have no effect', () => {
    const given = { a: 1, b: undefined as never }
    const options = read(given)
    given.a = 2
    expect({ ...options }).toEqual({ a: 1 })
    expect(Object.isFrozen(options)).toBe(true)
    expect({ ...read(undefined) }).toEqual({})
  })

  it('refuses an option that does not exist, and says which there are', () => {
    expect(() => read({ c: 1 })).toThrow(new TypeError('piece has no option "c". It has: a, b.'))
    expect(() => read({ A: 1 })).toThrow(new TypeError('piece has no option "A". Did you mean "a"? It has: a, b.'))
    expect(() => read(JSON.parse('{"__proto__": 1}'))).toThrow(TypeError)
  })

  it.each([null, 1, 'a', true, [[]], () => {}, Promise.resolve()])('refuses %j', (options) => {
    expect(() => read(options as never)).toThrow('piece takes an object of options, not ')
  })

  it('reads nothing that is inherited (threat 150)', () => {
    const prototype = Object.prototype as { a?: number }
    prototype.a = 7
    try {
      expect(read({}).a).toBeUndefined()
      expect(read(Object.create({ b: 'inherited' })).b).toBeUndefined()
    } finally {
      delete prototype.a
    }
  })
})
