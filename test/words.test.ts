import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

/** Words that readers stumble over, and what to write instead. A name in quotes, such as "nobody" of Unix, is a name. */
const WORDS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bwho(?:m?)ever\b/i, 'the client, the process: say which'],
  [/(?<!")\bnobody\b(?!")/i, 'no client, no user, not'],
  [/(?<!\bthere )\b(?:is|are|was) no\b(?! (?:longer|more)\b)/i, 'is not'],
  [/\bagain and again\b/i, 'repeatedly'],
  [/\bdear\b/i, 'expensive'],
  [/\btold\b/i, 'notified, gets, is called with'],
  [/\bours\b/i, 'of the service, of this package'],
]

/** Prose of a page: everything but what stands in code. */
function readPage(text: string): readonly string[] {
  return text
    .replaceAll(/^ *```.*?^ *```$/gms, '')
    .replaceAll(/`[^`\n]*`/g, '``')
    .split('\n')
}

/** Prose of a program: its comments, and its texts of more than one word, such as messages and names of tests. */
function readProgram(text: string, file: string): readonly string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const seen = new Set<number>()
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of ts.getLeadingCommentRanges(text, node.pos) ?? []) {
      if (!seen.has(pos)) found.push(text.slice(pos, end).replaceAll(/`[^`\n]*`/g, '``'))
      seen.add(pos)
    }
    for (const { pos, end } of ts.getTrailingCommentRanges(text, node.end) ?? []) {
      if (!seen.has(pos)) found.push(text.slice(pos, end).replaceAll(/`[^`\n]*`/g, '``'))
      seen.add(pos)
    }
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      if (/\w \w/.test(node.text)) found.push(node.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => /\.(?:ts|js|mjs|cjs|md)$/.test(file) && file !== 'test/words.test.ts')

describe('the prose of the project', () => {
  it('has none of the words that readers stumble over', () => {
    const wrong = files.flatMap((file) => {
      const text = readFileSync(file, 'utf8')
      // Few files have such a word at all, and parsing takes long.
      if (!WORDS.some(([pattern]) => pattern.test(text))) return []
      const prose = file.endsWith('.md') ? readPage(text) : readProgram(text, file)
      return prose.flatMap((sentence) =>
        WORDS.filter(([pattern]) => pattern.test(sentence)).map(
          ([pattern, instead]) => `${file}: "${pattern.exec(sentence)![0]}" (${instead}) in: ${sentence.slice(0, 200)}`,
        ),
      )
    })
    expect(wrong).toEqual([])
  })
})
