import { describe, expect, it } from 'vitest'
import type { Exchange } from '../../src/core/exchange.ts'
import { addVary, createVaryAdder } from '../../src/core/write-head.ts'

describe('createVaryAdder', () => {
  it('adds what addVary adds, whatever was added before it, request by request', () => {
    const add = createVaryAdder('Authorization, Cookie')
    for (const vary of [
      '',
      'Origin',
      'Origin',
      '',
      '*',
      'cookie',
      'Origin',
      'Accept, Origin',
      'Authorization, Cookie',
    ]) {
      const [own, usual] = [{ vary } as Exchange, { vary } as Exchange]
      add(own)
      addVary(usual, 'Authorization, Cookie')
      expect([vary, own.vary]).toEqual([vary, usual.vary])
    }
  })
})
