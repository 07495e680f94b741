import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from './real/programs.ts'
import { findRequests, pages, writeScript } from './support/doc-blocks.ts'
import { startDocProgram } from './support/recipes.ts'

/** Within the project, so that programs find the package by its name; of this run alone. */
let folder: string
beforeAll(() => {
  mkdirSync('.tmp', { recursive: true })
  folder = mkdtempSync(join('.tmp', 'requests-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const all = pages.flatMap(findRequests)

describe('requests of the documentation get the status that stands beside them', () => {
  it.each(all.map((requests) => [requests.block.name, requests] as const))('%s', async (_, requests) => {
    const file = join(folder, 'program.mjs')
    writeFileSync(file, requests.program.code)
    const { base } = await startDocProgram(requests.program.file ?? file)
    const { stdout } = await run('sh', ['-c', writeScript(requests, base)], { cwd: folder })
    expect(requests.expected.length).toBeGreaterThan(0)
    expect([...stdout.matchAll(/status (\d+)$/gm)].map(([, status]) => status)).toEqual(requests.expected)
  })
})
