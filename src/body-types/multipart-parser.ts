import { DelimiterTap, type TapEvents } from './delimiter-tap.ts'
import { FieldText } from './field-text.ts'
import type { PartHead } from './part-head.ts'
import { PartRules } from './part-rules.ts'
import type { BodyLimits, FormField } from './types.ts'

/** A file part whose content may still be arriving. */
export interface ArrivingFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string
  /** Content that has arrived and is not taken yet: at most two views into each chunk that was pushed. */
  readonly chunks: Uint8Array[]
  /** Whether nothing more will arrive. */
  isComplete: boolean
  /** Whether what arrives is dropped. */
  isSkipped: boolean
}

/** A parser of one multipart body that never waits: its caller decides how fast it reads. */
export class MultipartParser implements TapEvents {
  readonly #parts: (FormField | ArrivingFile)[]
  readonly #rules: PartRules
  readonly #tap: DelimiterTap
  /** The part that is being read, the bytes of its content so far, and where they go. */
  #head: PartHead | undefined = undefined
  #size = 0
  #file: ArrivingFile | undefined = undefined
  readonly #text = new FieldText()

  /** @param parts where parts are added, in order: a field when it is complete, a file when it begins */
  constructor(boundary: string, limits: BodyLimits, parts: (FormField | ArrivingFile)[]) {
    this.#parts = parts
    this.#rules = new PartRules(limits)
    this.#tap = new DelimiterTap(boundary, this)
  }

  /**
   * Adds the parts that begin or end in this chunk, before it returns.
   * @throws HttpError 400, 413, 415; the parts before the fault have been added
   */
  push(chunk: Uint8Array): void {
    this.#tap.push(chunk)
  }

  /** The content has ended. @throws HttpError 400 when it is cut short */
  end(): void {
    this.#tap.end()
  }

  onHead(data: Buffer, start: number, end: number): void {
    const head = this.#rules.begin(data, start, end)
    this.#head = head
    this.#size = 0
    this.#file = head.isFile ? createArrivingFile(head) : undefined
    if (this.#file !== undefined) this.#parts.push(this.#file)
  }

  onContent(data: Buffer, start: number, end: number): void {
    const file = this.#file
    this.#size += end - start
    this.#rules.take(this.#head!, this.#size, end - start)
    if (file === undefined) this.#text.add(data, start, end)
    else if (!file.isSkipped) file.chunks.push(data.subarray(start, end))
  }

  onPartEnd(): void {
    const { name, charset } = this.#head!
    if (this.#file !== undefined) this.#file.isComplete = true
    else this.#parts.push({ kind: 'field', name, value: this.#text.take(charset) })
  }
}

function createArrivingFile({ name, filename, contentType }: PartHead): ArrivingFile {
  return { kind: 'file', name, filename, contentType, chunks: [], isComplete: false, isSkipped: false }
}
