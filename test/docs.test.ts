import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = promisify(execFile)

function listPages(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return listPages(path)
    return path.endsWith('.md') ? [path] : []
  })
}

const pages = ['README.md', ...listPages('docs')]

const blocks = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(/^```js\n(.*?)^```/gms)].map(([, code], index) => ({
    name: `${page} ${index + 1}`,
    code: code!,
  })),
)

/** Runs a block as a program of its own on free ports; whatever it starts is ended once it has run. */
async function runBlock(name: string, code: string): Promise<void> {
  mkdirSync('.tmp', { recursive: true })
  const file = join('.tmp', `${name.replaceAll(/\W+/g, '-')}.mjs`)
  const onFreePorts = code.replaceAll(/\b8080\b/g, '0')
  writeFileSync(file, `${onFreePorts}\nsetTimeout(() => process.exit(0), 200)\n`)
  await run(process.execPath, [file], { timeout: 15_000 })
}

describe('documentation', () => {
  it.each(blocks)('has a program that runs: $name', async ({ name, code }) => {
    await runBlock(name, code)
  })

  it('links to pages that exist', () => {
    const broken = pages.flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)]
        .map(([, link]) => join(page, '..', link!))
        .filter((target) => {
          try {
            readdirSync(target)
            return false
          } catch (error) {
            return (error as NodeJS.ErrnoException).code === 'ENOENT'
          }
        })
        .map((target) => `${page}: ${target}`),
    )
    expect(broken).toEqual([])
  })

  it('is up to date where it is derived from the source and the tests', async () => {
    await expect(run(process.execPath, ['scripts/write-docs.js', '--check'])).resolves.toBeDefined()
  })
})
