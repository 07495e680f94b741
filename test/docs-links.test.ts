import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pages } from './support/doc-blocks.ts'

const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: readonly string[] }

/** What npm packs beside `files`. */
const PACKED = [...files, 'README.md', 'LICENSE', 'package.json']

const isPacked = (path: string): boolean => PACKED.some((file) => path === file || path.startsWith(`${file}/`))

interface Link {
  readonly page: string
  readonly name: string
  /** A path from the root of the package. */
  readonly target: string
  readonly anchor: string | undefined
}

function readLinks(page: string): readonly Link[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '')
  return [...text.matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)/g)].map(([, path, anchor]) => {
    const target = path === '' ? page : join(dirname(page), path!)
    return { page, name: `${page}: ${path}${anchor === undefined ? '' : `#${anchor}`}`, target, anchor }
  })
}

/** The anchors of a page, as GitHub and the site make them of its headings. */
function readAnchors(page: string): ReadonlySet<string> {
  const headings = readFileSync(page, 'utf8')
    .replaceAll(/^ *```.*?^ *```$/gms, '')
    .matchAll(/^#+ (.+)$/gm)
  return new Set(
    [...headings].map(([, text]) =>
      text!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  )
}

const links = pages.flatMap(readLinks)
const packed = links.filter(({ page }) => isPacked(page))

describe('links of the documentation', () => {
  it('lead to files that are there', () => {
    expect(links.length).toBeGreaterThan(80)
    expect(links.filter(({ target }) => !existsSync(target)).map(({ name }) => name)).toEqual([])
  })

  it('resolve in the package too', () => {
    expect(packed.filter(({ target }) => !isPacked(target)).map(({ name }) => name)).toEqual([])
  })

  it('name headings that are there', () => {
    const wrong = links.filter(
      ({ target, anchor }) =>
        anchor !== undefined && statSync(target).isFile() && !readAnchors(target).has(decodeURIComponent(anchor)),
    )
    expect(wrong.map(({ name }) => name)).toEqual([])
  })
})

describe('tables of the documentation', () => {
  it('name each of their columns, for readers who hear the page', () => {
    const heads = pages.flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/^(\|.*\|)\n\|[-:| ]+\|$/gm)].map(([, head]) => `${page}: ${head}`),
    )
    expect(heads.length).toBeGreaterThan(100)
    expect(heads.filter((head) => /\| *\|/.test(head))).toEqual([])
  })
})
