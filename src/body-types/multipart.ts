import type { MediaType } from '../protocol/media-type.ts'
import { collectFields, type FilePart, type FormField, type FormPart, type FormValues } from './form.ts'
import { type BodyLimits, DEFAULT_LIMITS } from './limits.ts'
import { type ArrivingFile, createMultipartParser } from './multipart-parser.ts'
import { collectBytes } from './read-body.ts'

const DONE = Object.freeze({ done: true, value: undefined })

/**
 * Reads `multipart/form-data` content (RFC 7578) part by part, with back-pressure and in constant memory.
 *
 * The content of a file is to be read before the next part is asked for; what is not read by then is skipped. Leaving the
 * loop early gives the rest up. Text is decoded strictly by the charset of its part, UTF-8 by default; `_charset_` is a
 * field like any other.
 * @param source the content; it is read no faster than the parts
 * @param mediaType Content-Type with its boundary
 * @param limits counts and sizes: n passes, n + 1 is 413 (400 for `nameLength`)
 * @returns parts, once, in their order; after an error no further part
 * @throws HttpError at once, 415 for another media type and 400 for a boundary that is missing or malformed; while
 *   reading 400, 413 and 415, and whatever the source throws
 */
export function parseMultipart(
  source: AsyncIterable<Uint8Array>,
  mediaType: MediaType,
  limits: BodyLimits = DEFAULT_LIMITS,
): AsyncIterable<FormPart> {
  const parts: (FormField | ArrivingFile)[] = []
  const parser = createMultipartParser(mediaType, limits, parts)
  let input: AsyncIterator<Uint8Array> | undefined
  let pulling: Promise<void> | undefined
  let ended = false
  let failure: unknown
  let isLeft = false
  let file: ArrivingFile | undefined

  /** Takes one more chunk of the source; never rejects. Other callers wait for the same chunk. */
  function more(): Promise<void> {
    return (pulling ??= pull())
  }

  async function pull(): Promise<void> {
    try {
      // Not before the first part is asked for: it may have a client send its content.
      input ??= source[Symbol.asyncIterator]()
      const { done, value } = await input.next()
      if (!done) return parser.push(value)
      parser.end()
      ended = true
    } catch (error) {
      giveUp(error).catch(() => {})
    } finally {
      pulling = undefined
    }
  }

  async function giveUp(error: unknown): Promise<void> {
    if (ended || failure !== undefined) return
    failure = error
    await input?.return?.()
  }

  return {
    [Symbol.asyncIterator]() {
      return {
        async next() {
          if (file !== undefined && !isLeft) skip(file)
          for (;;) {
            if (isLeft) return DONE
            const part = parts.shift()
            if (part !== undefined) {
              if (part.kind === 'field') return { done: false, value: part }
              file = part
              return { done: false, value: createFilePart(part, () => failure, more) }
            }
            if (failure !== undefined) throw failure
            if (ended) return DONE
            await more()
          }
        },
        async return() {
          isLeft = true
          const closing = giveUp(new Error('The parts are not read any further.')).catch(() => {})
          // A source that is waiting for its next chunk may close only when that has come.
          if (pulling === undefined) await closing
          return DONE
        },
      }
    },
  }
}

function skip(file: ArrivingFile): void {
  if (file.isComplete && file.chunks.length === 0) return
  file.isSkipped = true
  file.chunks.length = 0
}

function createFilePart(file: ArrivingFile, failure: () => unknown, more: () => Promise<void>): FilePart {
  const { kind, name, filename, contentType } = file
  const content: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      for (;;) {
        const chunk = file.chunks.shift()
        if (chunk !== undefined) return { done: false, value: chunk }
        if (file.isSkipped) throw new Error('The content of a file part is gone once the next part is asked for.')
        if (file.isComplete) return DONE
        // Never an early end: content that is cut short must not look whole.
        if (failure() !== undefined) throw failure()
        await more()
      }
    },
    async return() {
      skip(file)
      return DONE
    },
  }
  return { kind, name, filename, contentType, content: { [Symbol.asyncIterator]: () => content } }
}

/** A file that is held in memory. */
interface CollectedFile extends Omit<FilePart, 'kind' | 'content'> {
  readonly content: Uint8Array
}

/** All parts of a form. */
export interface CollectedParts {
  readonly fields: FormValues
  /** In the order of the form; a name may occur more than once. */
  readonly files: readonly CollectedFile[]
}

/**
 * Reads all parts into memory.
 * @param limit the most bytes of all files together; one more is 413
 */
export async function collectParts(parts: AsyncIterable<FormPart>, limit: number): Promise<CollectedParts> {
  const fields: FormField[] = []
  const files: CollectedFile[] = []
  let size = 0
  for await (const part of parts) {
    if (part.kind === 'field') {
      fields.push(part)
      continue
    }
    const content = await collectBytes(part.content, limit, size)
    size += content.length
    const { name, filename, contentType } = part
    files.push({ name, filename, contentType, content })
  }
  return { fields: collectFields(fields), files }
}
