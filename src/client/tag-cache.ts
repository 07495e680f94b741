import type { Answer } from './answer.ts'

/** The longest content that is kept, in characters. */
const MAX_LENGTH = 100_000

/** Answers by URL, so that what has not changed is not sent again (304). The oldest go first. */
export interface TagCache {
  /** The answer to send If-None-Match for. */
  find(url: string): Answer | undefined
  keep(answer: Answer): void
  forget(url: string): void
}

/** @param size the most answers that are kept */
export function createTagCache(size: number): TagCache {
  const answers = new Map<string, Answer>()
  return {
    find: (url) => answers.get(url),
    keep(answer) {
      answers.delete(answer.url)
      if (answer.headers.get('etag') === null || answer.text.length > MAX_LENGTH) return
      answers.set(answer.url, answer)
      if (answers.size > size) answers.delete(answers.keys().next().value!)
    },
    forget: (url) => void answers.delete(url),
  }
}
