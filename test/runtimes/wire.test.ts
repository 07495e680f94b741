import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { demoSettings } from '../support/demo.ts'
import { type Program, runProgram } from '../support/run-program.ts'
import { CASES } from './cases.ts'
import { DIFFERENCES } from './differences.ts'
import { findRuntime } from './find-runtime.ts'
import { exchange } from './read-responses.ts'

// `npm test` runs this under Node, which shows that the cases are right; `npm run test:runtimes` under the others.
const runtime = findRuntime()
const differences = DIFFERENCES[runtime.name] ?? {}

describe(`the demo server on ${runtime.name} (issue 22)`, () => {
  let program: Program
  let port: number

  beforeAll(async () => {
    program = runProgram(
      runtime.file,
      {
        PORT: '0',
        DEMO_SECRET: demoSettings.secret,
        DEMO_USER: demoSettings.user,
        DEMO_PASSWORD: demoSettings.password,
        CORS_ORIGINS: demoSettings.origins.join(),
      },
      runtime.args,
      [],
      runtime.program,
    )
    port = Number((await program.waitFor(/listening on http:\/\/127\.0\.0\.1:(\d+)/))[1])
  })
  afterAll(() => program.stop())

  for (const { title, parts, methods, expected, look } of CASES) {
    const difference = differences[title]
    it(difference === undefined ? title : `differs: ${title}`, async () => {
      const responses = await exchange(port, parts, methods)
      expect(look!(responses)).toEqual(difference ?? expected)
    })
  }

  it('knows no difference of a case that is not there', () => {
    expect(Object.keys(differences).filter((title) => !CASES.some((one) => one.title === title))).toEqual([])
  })
})
