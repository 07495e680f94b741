import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { type AnswerRecord, nameRecord, RECORDS } from './check-answers.ts'

/** The folders whose tests meet every answer; a run without one of their files compares nothing. */
const NEEDED = ['test/service', 'test/writes', 'test/openapi']

/**
 * Fails a run in which a description says that something can be answered, and no test of any file was answered so: for
 * each kind of resource, method, status and type of problem (issue 21).
 */
export default function compareAnswers({ config }: TestProject): () => void {
  rmSync(RECORDS, { recursive: true, force: true })
  return () => {
    if (config.testNamePattern !== undefined) return
    const needed = NEEDED.flatMap((folder) =>
      readdirSync(folder)
        .filter((file) => file.endsWith('.test.ts'))
        .map((file) => nameRecord(join(folder, file))),
    )
    // A run whose tests send nothing, or fail before they do, records nothing.
    const found = new Set(existsSync(RECORDS) ? readdirSync(RECORDS) : [])
    if (needed.some((name) => !found.has(name))) return
    const records = [...found].map((name) => JSON.parse(readFileSync(join(RECORDS, name), 'utf8')) as AnswerRecord)
    const unseen = findUnseen(records)
    if (unseen.length > 0) throw new Error(`Described, but answered in no test:\n${unseen.join('\n')}`)
  }
}

/** Answers that are described in some file, and given in none. */
export function findUnseen(records: readonly AnswerRecord[]): readonly string[] {
  const seen = new Set(records.flatMap((record) => record.seen))
  const described = new Set(records.flatMap((record) => record.described))
  return [...described].filter((key) => !seen.has(key)).sort()
}
