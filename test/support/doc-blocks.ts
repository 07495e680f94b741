import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A code block of the documentation. */
export interface DocBlock {
  readonly page: string
  /** Page, language and number: `README.md js 2`. */
  readonly name: string
  readonly language: string
  readonly code: string
  /** The file of examples/ that its first line names; `npm run docs` keeps the block equal to it. */
  readonly file: string | undefined
}

function listPages(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name.startsWith('.') ? [] : listPages(path)
    return path.endsWith('.md') ? [path] : []
  })
}

export const pages: readonly string[] = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...listPages('docs')]

/** Every code block of a page, in order. */
export function readBlocks(page: string): readonly DocBlock[] {
  const counts: Record<string, number> = {}
  return [...readFileSync(page, 'utf8').matchAll(/^ *```(\S*)\n(.*?)^ *```$/gms)].map(([, language, code]) => {
    counts[language!] = (counts[language!] ?? 0) + 1
    return {
      page,
      name: `${page} ${language} ${counts[language!]}`,
      language: language!,
      code: code!,
      file: /^(?:\/\/|#) (examples\/\S+)\n/.exec(code!)?.[1],
    }
  })
}

export const blocks: readonly DocBlock[] = pages.flatMap(readBlocks)

/**
 * How a block is checked. `run`: in test/docs.test.ts, which also checks its types. `example`: it is a file of examples/,
 * which has a test of its own.
 */
export type BlockCheck = 'run' | 'example' | 'curl' | 'elsewhere' | undefined

/** Blocks that only another test can run, and where that is. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  // Needs a Worker; the types are checked in test/docs.test.ts.
  'docs/runtimes.md ts 1': 'test/runtimes/worker-entry.mjs',
}

export function findCheck({ name, language, file }: DocBlock): BlockCheck {
  if (name in ELSEWHERE) return 'elsewhere'
  if (file !== undefined) return 'example'
  return language === 'js' || language === 'ts' ? 'run' : undefined
}

/** Lines of curl with the status that they are to get as a comment: `curl -i localhost:8080/users # 200`. */
export interface CurlSession {
  readonly block: DocBlock
  /** The program before it on the page, which answers. */
  readonly program: DocBlock
  readonly expected: readonly string[]
}

const COMMENT = /\s# (\d{3})\b.*$/

/** The blocks of curl lines that are for the program before them. */
export function findCurlSessions(page: string): readonly CurlSession[] {
  const all = readBlocks(page)
  return all.flatMap((block, index) => {
    if (block.language !== 'sh' || !block.code.includes('localhost:8080')) return []
    const program = all.slice(0, index).findLast(({ language }) => ['js', 'ts'].includes(language))
    if (program === undefined) throw new Error(`${block.name} has no program before it.`)
    const expected = joinLines(block.code).flatMap((line) => COMMENT.exec(line)?.[1] ?? [])
    return [{ block, program, expected }]
  })
}

const joinLines = (code: string): string[] => code.trim().replaceAll('\\\n', ' ').split('\n')

/** A program for `sh` that runs the lines of a session and prints the status of each that names one. */
export function writeCurlScript({ block }: CurlSession, base: string): string {
  const lines = joinLines(block.code).map((line) => {
    const command = line.replaceAll('localhost:8080', base.replace('http://', '')).replace(/\s# .*$/, '')
    if (!COMMENT.test(line)) return command
    return `{ ${command}; } 2>/dev/null | sed -n 's/^HTTP.1.1 \\([0-9]*\\).*/\\1/p' | tail -n 1`
  })
  return lines.join('\n')
}
