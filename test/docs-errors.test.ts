import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const page = readFileSync('docs/errors.md', 'utf8')
const rows = [...page.matchAll(/^\| (\d{3}) \| `(ERR_\w+)` \|/gm)].map(([, status, code]) => `${status} ${code}`)

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(join('src', file), 'utf8'))

describe('docs/errors.md', () => {
  it('has a row for every code, and no other', () => {
    const union = readFileSync('src/core/errors.ts', 'utf8').matchAll(/^ {2}\| '(ERR_\w+)'$/gm)
    const codes = [...union].map(([, code]) => code)
    expect(codes.length).toBeGreaterThan(30)
    expect([...new Set(rows.map((row) => row.slice(4)))].sort()).toEqual(codes.sort())
  })

  it('has every status with which the source throws a code', () => {
    const thrown = sources.flatMap((text) =>
      [...text.matchAll(/HttpError\((\d{3}), '(ERR_\w+)'/g)].map(([, status, code]) => `${status} ${code}`),
    )
    expect([...new Set(thrown)].filter((pair) => !rows.includes(pair)).sort()).toEqual([])
  })
})
