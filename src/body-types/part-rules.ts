import { malformedBody, tooMany } from './body-errors.ts'
import { type PartHead, readPartHead } from './part-head.ts'
import { tooLarge } from './read-body.ts'
import type { BodyLimits } from './types.ts'

/** Judges the parts of one multipart body, in the order in which they come. A class: see {@link DelimiterTap}. */

export class PartRules {
  readonly #limits: BodyLimits
  #fields = 0
  #files = 0
  #fieldsSize = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /**
   * Reads the header section of the next part.
   * @throws HttpError as {@link readPartHead}; 413 for a part or a header field too many, 400 for a name that is too long
   */
  begin(data: Buffer, start: number, end: number): PartHead {
    const limits = this.#limits
    if (this.#fields + this.#files === limits.parts) throw tooMany('parts', limits.parts)
    const head = readPartHead(data, start, end)
    if (head.fieldCount > limits.partHeaders) throw tooMany('header fields in a part', limits.partHeaders)
    if (head.name.length > limits.nameLength) throw malformedBody('The name of a part is too long.')
    if (head.isFile) {
      if (++this.#files > limits.files) throw tooMany('files', limits.files)
    } else if (++this.#fields > limits.fields) throw tooMany('fields', limits.fields)
    return head
  }

  /**
   * Takes more content of the part.
   * @param size bytes of its content so far, `added` included
   * @throws HttpError 413
   */
  take(head: PartHead, size: number, added: number): void {
    const limits = this.#limits
    if (head.isFile) {
      if (size > limits.fileSize) throw tooLarge(limits.fileSize)
      return
    }
    this.#fieldsSize += added
    if (size > limits.fieldSize) throw tooLarge(limits.fieldSize)
    if (this.#fieldsSize > limits.fieldsSize) throw tooLarge(limits.fieldsSize)
  }
}
