import { describe, expect, it } from 'vitest'
import { runProgram } from '../support/run-program.ts'

describe('construction', () => {
  // Workers refuse all of it while a module is loaded, and that is where services are constructed.
  it('draws no random bytes, starts no timer and does no IO (issue 22)', async () => {
    const program = runProgram('test/service/construct-all.mjs')
    await program.ended
    expect(JSON.parse(program.output())).toEqual([])
  })
})
