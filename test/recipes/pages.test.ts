import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { blocks } from '../support/doc-blocks.ts'

describe('docs/recipes', () => {
  it('shows every file of examples/recipes', () => {
    const shown = blocks.flatMap(({ file }) => file ?? [])
    const files = readdirSync('examples/recipes', { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
    expect(files.filter((file) => !shown.includes(file))).toEqual([])
  })

  it('has every page in its table of contents', () => {
    const pages = readdirSync('docs/recipes').filter((name) => name.endsWith('.md') && name !== 'index.md')
    const contents = readFileSync('docs/recipes/index.md', 'utf8')
    expect(pages.filter((page) => !contents.includes(`](${page})`))).toEqual([])
  })
})
