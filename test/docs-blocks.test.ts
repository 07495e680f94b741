import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { blocks, ELSEWHERE, findCheck } from './support/doc-blocks.ts'

describe('code blocks of the documentation', () => {
  it('are each checked by a test', () => {
    expect(blocks.length).toBeGreaterThan(50)
    expect(blocks.filter((block) => findCheck(block) === undefined).map(({ name }) => name)).toEqual([])
  })

  it('are checked elsewhere only where that exists', () => {
    const names = blocks.map(({ name }) => name)
    expect(Object.keys(ELSEWHERE).filter((name) => !names.includes(name))).toEqual([])
    const files = Object.values(ELSEWHERE).filter((place) => place.includes('/'))
    expect(files.filter((file) => !existsSync(file))).toEqual([])
  })
})
