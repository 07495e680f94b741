import { describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS, readLimits } from '../../src/body-types/limits.ts'

describe('readLimits', () => {
  it('fills in the defaults: 8 MiB parsed, depth 100, 1000 parameters, 110 parts, files of any size', () => {
    expect(readLimits('x', undefined)).toEqual(DEFAULT_LIMITS)
    expect(readLimits('x', { depth: 5 })).toEqual({ ...DEFAULT_LIMITS, depth: 5 })
    expect(DEFAULT_LIMITS).toMatchObject({
      bodySize: 8 * 1024 * 1024,
      depth: 100,
      formFields: 1000,
      parts: 110,
      fileSize: Number.POSITIVE_INFINITY,
    })
  })

  it('takes 0 and Infinity', () => {
    expect(readLimits('x', { files: 0, bodySize: Number.POSITIVE_INFINITY })).toMatchObject({
      files: 0,
      bodySize: Number.POSITIVE_INFINITY,
    })
  })

  it.each([{ files: -1 }, { files: Number.NaN }, { files: '5' as never }, { filesize: 1 } as never])(
    'refuses %j with a TypeError',
    (given) => {
      expect(() => readLimits('bodyParse', given)).toThrow(TypeError)
    },
  )

  it('refuses properties that are inherited, which a copy is without', () => {
    const given = Object.create({ files: 1 }) as { files?: number }
    expect(() => readLimits('x', given)).toThrow('x limits takes options as enumerable properties of the object itself')
  })
})
