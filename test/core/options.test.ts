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
      expect({ ...read(new (class {})()) }).toEqual({})
    } finally {
      delete prototype.a
    }
  })

  it.each<[string, object]>([
    ['of the prototype', Object.create({ b: 'inherited' })],
    [
      'with a getter of its class',
      new (class {
        get b() {
          return 'inherited'
        }
      })(),
    ],
    ['that is not enumerable', Object.defineProperty({}, 'b', { value: 'hidden' })],
  ])('refuses an option %s, which a copy is without', (_, options) => {
    expect(() => read(options)).toThrow(
      new TypeError('piece takes options as enumerable properties of the object itself; "b" is not one.'),
    )
  })

  it('reads the fields of an object that has a class, getters of the object itself, and a frozen object', () => {
    class Fields {
      b = 'own'
      method() {}
    }
    expect({ ...read(new Fields()) }).toEqual({ b: 'own' })
    const getter = {
      get a() {
        return 1
      },
    }
    expect({ ...read(Object.freeze(getter)) }).toEqual({ a: 1 })
  })
})
