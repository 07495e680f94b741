import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { BOOLEAN, listOf, required, SIZE, TEXT, withDefault } from '../../src/core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../../src/core/options.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'

interface Options {
  readonly a?: number
  readonly b?: string
}

describe('a copy of options', () => {
  const TABLE = { a: SIZE, b: TEXT } satisfies OptionTable<Options>
  const read = (options: object | undefined) => resolveOptions<Options, typeof TABLE>('piece', options, TABLE)

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

describe('resolveOptions', () => {
  interface Options {
    readonly name: string
    readonly size?: number
    readonly isOpen?: boolean
  }
  const TABLE = { name: required(TEXT), size: withDefault(SIZE, 7), isOpen: BOOLEAN } satisfies OptionTable<Options>
  const resolve = (options: object | undefined) => resolveOptions('piece', options as Options, TABLE)

  it('fills in the defaults of options that are left out, or undefined', () => {
    expect({ ...resolve({ name: 'a' }) }).toEqual({ name: 'a', size: 7 })
    expect({ ...resolve({ name: 'a', size: undefined }) }).toEqual({ name: 'a', size: 7 })
    expect({ ...resolve({ name: 'a', size: 0, isOpen: false }) }).toEqual({ name: 'a', size: 0, isOpen: false })
    expect(Object.isFrozen(resolve({ name: 'a' }))).toBe(true)
  })

  it('refuses an option that the table does not have, one that is missing, and a wrong value', () => {
    expect(() => resolve({ name: 'a', siz: 1 })).toThrow('piece has no option "siz". Did you mean "size"?')
    expect(() => resolve({})).toThrow(new TypeError('piece takes as name: text; it is undefined.'))
    expect(() => resolve(undefined)).toThrow(new TypeError('piece takes as name: text; it is undefined.'))
    expect(() => resolve({ name: 'a', size: -1 })).toThrow('piece takes as size: a number of 0 or more')
    expect(() => resolve({ name: 'a', isOpen: 'no' })).toThrow('piece takes as isOpen: true or false; it is text.')
  })

  it('reads nothing that is inherited, neither of the options nor of their rules (threat 150)', () => {
    const prototype = Object.prototype as Record<string, unknown>
    const polluted = { isOpen: 1, default: 'b', isRequired: true }
    Object.assign(prototype, polluted)
    try {
      expect(Object.entries(resolve({ name: 'a' }))).toEqual([
        ['name', 'a'],
        ['size', 7],
      ])
      expect(resolve({ name: 'a' }).isOpen).toBeUndefined()
      expect(completeOptions(resolve({ name: 'a' }), TABLE).isOpen).toBeUndefined()
    } finally {
      for (const name of Object.keys(polluted)) delete prototype[name]
    }
  })
})

describe('completeOptions', () => {
  it('sets each option of the table, so that none is inherited', () => {
    const TABLE = { a: withDefault(SIZE, 7), b: TEXT } satisfies OptionTable<Options>
    const complete = completeOptions(resolveOptions<Options, typeof TABLE>('piece', {}, TABLE), TABLE)
    expect(Object.entries(complete)).toEqual([
      ['a', 7],
      ['b', undefined],
    ])
  })
})

describe('a list in the options', () => {
  it('is copied: a later change of it has no effect', () => {
    const given = { names: ['a'] }
    const read = resolveOptions('f', given, { names: listOf(TEXT) })
    given.names.push('b')
    expect(read.names).toEqual(['a'])
  })

  it('is copied by a definition, which would not check what is added', () => {
    const types = ['text/plain']
    const { options } = document({ types })
    types.push('*/*')
    expect(options.types).toEqual(['text/plain'])
  })

  it('is copied for the schemes of a service, which goes on to ask for credentials', async () => {
    const schemes = [basic({ accounts: { ada: 'lovelace' } })]
    const { send } = await serve(memoryStore(), { auth: { schemes } })
    schemes.length = 0
    expect((await send('GET', '/a')).status).toBe(401)
  })
})
