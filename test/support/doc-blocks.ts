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

export const pages: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...listPages('docs'),
]

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
 * How a block is checked. `run`: test/docs.test.ts runs it and checks its types. `example`: it is a file of examples/, which
 * has a test of its own. `request`: test/docs-requests.test.ts sends it to the program before it. `elsewhere`: see there.
 * `grammar`: the rules of a grammar (RFC 5234), and not a program.
 */
export type BlockCheck = 'run' | 'example' | 'request' | 'elsewhere' | 'grammar' | undefined

/** Blocks that only another test can run, and where that is; of those that are not programs, why they stand there. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  'README.md sh 1': 'test/examples.test.ts',
  'README.md sh 2': 'test/examples.test.ts',
  'README.md sh 3': 'scripts/check-consumers.js',
  'docs/collections.md json 1': 'test/queries/refusals.test.ts',
  'docs/exactly-once.md sh 1': 'test/real/recipes.test.ts',
  'docs/exactly-once.md sh 2': 'test/real/recipes.test.ts',
  'docs/exactly-once.md sh 3': 'test/real/recipes.test.ts',
  'docs/migration/express.md text 1': 'an application without this package, in outline',
  'docs/recipes/caching.md text 1': 'test/recipes/proxies.test.ts',
  'docs/recipes/react-admin.md jsx 1': 'an application of react-admin, in outline',
  // Needs a Worker; test/docs.test.ts checks its types.
  'docs/runtimes.md ts 1': 'test/runtimes/worker-entry.mjs',
  'docs/stores.md sh 1': 'test/stores/run-kit.test.ts',
}

export function findCheck({ name, language, file, code }: DocBlock): BlockCheck {
  if (name in ELSEWHERE) return 'elsewhere'
  if (file !== undefined) return 'example'
  if (/^\w+ += /.test(code) && (language === '' || language === 'abnf')) return 'grammar'
  if (language === 'js' || language === 'ts') return 'run'
  return language === 'http' || (language === 'sh' && code.includes('localhost:8080')) ? 'request' : undefined
}

/** Requests of a page with the status that each of them is to get: `curl -i localhost:8080/users # 200`. */
export interface DocRequests {
  readonly block: DocBlock
  /** The program before them on the page, which answers. */
  readonly program: DocBlock
  readonly expected: readonly string[]
}

const COMMENT = /\s# (\d{3})\b.*$/

/** The blocks of a page that are requests to the program before them. */
export function findRequests(page: string): readonly DocRequests[] {
  const all = readBlocks(page)
  return all.flatMap((block, index) => {
    if (findCheck(block) !== 'request') return []
    const program = all.slice(0, index).findLast(({ language }) => ['js', 'ts'].includes(language))
    if (program === undefined) throw new Error(`${block.name} has no program before it.`)
    const expected = joinLines(block.code).flatMap((line) => COMMENT.exec(line)?.[1] ?? [])
    return [{ block, program, expected: block.language === 'http' ? ['201'] : expected }]
  })
}

const joinLines = (code: string): string[] => code.trim().replaceAll('\\\n', ' ').split('\n')

/** A program for `sh` that sends the requests and prints `status NNN` for each that names one. */
export function writeScript({ block }: DocRequests, base: string): string {
  const address = base.replace('http://', '')
  if (block.language === 'http') return writeRawRequest(block.code, address)
  const lines = joinLines(block.code).map((line) => {
    const command = line.replaceAll('localhost:8080', address).replace(/\s# .*$/, '')
    if (!COMMENT.test(line)) return command
    return `{ ${command}; } 2>/dev/null | sed -n 's/^HTTP.1.1 \\([0-9]*\\).*/status \\1/p' | tail -n 1`
  })
  return lines.join('\n')
}

/** A request that a page shows as it is on the wire; Host and Content-Length are left out there. */
function writeRawRequest(text: string, address: string): string {
  const [head, content] = text.trim().split('\n\n') as [string, string]
  const [line, ...fields] = head.split('\n')
  const [method, target] = line!.split(' ')
  const options = fields.map((field) => `-H '${field}'`).join(' ')
  return `curl -s -o /dev/null -w 'status %{http_code}\\n' -X ${method} '${address}${target}' ${options} -d '${content}'`
}
