import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../real/programs.ts'
import { blocks, findCurlSessions, pages, writeCurlScript } from '../support/doc-blocks.ts'
import { startRecipe } from '../support/recipes.ts'

const recipes = pages.filter((page) => page.startsWith('docs/recipes/'))

describe('docs/recipes', () => {
  it('shows every file of examples/recipes', () => {
    const shown = blocks.flatMap(({ file }) => file ?? [])
    const files = readdirSync('examples/recipes', { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
    expect(files.filter((file) => !shown.includes(file))).toEqual([])
  })
})

const sessions = recipes.flatMap(findCurlSessions)

describe('the curl lines of a recipe', () => {
  it.each(sessions.map((session) => [session.block.name, session] as const))('%s', async (_, session) => {
    const { base } = await startRecipe(session.program.file!.replace('examples/recipes/', ''))
    const { stdout } = await run('sh', ['-c', writeCurlScript(session, base)])
    expect(session.expected.length).toBeGreaterThan(0)
    expect(stdout.trim().split('\n')).toEqual(session.expected)
  })
})
