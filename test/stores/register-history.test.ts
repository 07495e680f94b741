import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Effect, explainHistory, type Operation } from '../../src/conformance/register-history.ts'

const read = (saw: string | undefined): Effect => ({ kind: 'swap', from: saw, to: saw })
const write = (to: string, isNew = false): Effect => ({ kind: 'write', isNew, to })
const swap = (from: string | undefined, to: string | undefined): Effect => ({ kind: 'swap', from, to })

function history(...calls: readonly (readonly [begin: number, end: number, effect: Effect])[]): Operation[] {
  return calls.map(([begin, end, effect]) => ({ begin, end, effect }))
}

describe('explainHistory', () => {
  const sound: readonly [string, Operation[]][] = [
    ['no calls', []],
    ['one after the other', history([0, 1, write('a', true)], [2, 3, read('a')], [4, 5, swap('a', 'b')])],
    ['a read beside a write that sees it', history([0, 5, write('a', true)], [1, 2, read('a')])],
    ['a read beside a write that does not', history([0, 5, write('a', true)], [1, 2, read(undefined)])],
    ['two writes at once, in either order', history([0, 9, write('a', true)], [1, 8, write('b')], [10, 11, read('b')])],
    [
      'two writes at once, the later one first',
      history([0, 9, write('a')], [1, 8, write('b', true)], [10, 11, read('a')]),
    ],
    ['a swap and a conflict', history([0, 1, write('a', true)], [2, 6, swap('a', 'b')], [3, 7, read('b')])],
    [
      'a removal and a new life',
      history([0, 1, write('a', true)], [2, 3, swap('a', undefined)], [4, 5, swap(undefined, 'b')]),
    ],
  ]
  for (const [name, calls] of sound) {
    it(`finds the order of calls that agree: ${name}`, () => {
      expect(explainHistory(calls)).toBeUndefined()
    })
  }

  const contradictory: readonly [string, Operation[]][] = [
    ['a read of a state that was not written', history([0, 1, read('a')])],
    ['a read of the past', history([0, 1, write('a', true)], [2, 3, write('b')], [4, 5, read('a')])],
    ['a write that vanishes', history([0, 1, write('a', true)], [2, 3, read(undefined)])],
    ['two winners', history([0, 1, write('a', true)], [2, 6, swap('a', 'b')], [3, 7, swap('a', 'c')])],
    ['two creations', history([0, 5, write('a', true)], [1, 6, write('b', true)])],
    [
      'reads that see two writes in opposite orders',
      history([0, 9, write('a', true)], [0, 9, write('b')], [1, 2, read('b')], [3, 4, read('a')], [5, 6, read('b')]),
    ],
    [
      'a new state, then an old one again',
      history([0, 1, write('a', true)], [2, 9, write('b')], [3, 4, read('b')], [5, 6, read('a')]),
    ],
  ]
  for (const [name, calls] of contradictory) {
    it(`says that nothing explains ${name}`, () => {
      expect(explainHistory(calls)).toMatch(/^No order of the calls explains what they saw: .*\.$/)
    })
  }

  it('explains every history that was made from an order', () => {
    const operation = fc.record({
      kind: fc.constantFrom('read', 'write', 'swap', 'remove'),
      before: fc.nat(6),
      after: fc.nat(6),
    })
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 25 }), (operations) => {
        let state: string | undefined
        const calls = operations.map(({ kind, before, after }, at): Operation => {
          const from = state
          if (kind === 'remove') state = undefined
          else if (kind !== 'read') state = `v${at}`
          const effect =
            kind === 'read' ? read(from) : kind === 'write' ? write(state!, from === undefined) : swap(from, state)
          // The moment of the effect is 10 * at; the call spans it.
          return { begin: 10 * at - 10 * before - 1, end: 10 * at + 10 * after + 1, effect }
        })
        expect(explainHistory(calls)).toBeUndefined()
      }),
    )
  })
})
