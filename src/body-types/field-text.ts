import { ByteBlocks } from '../core/byte-blocks.ts'
import { decodePart, decodeText } from './text.ts'

const NOTHING = new Uint8Array(0)

/** The text of one field of a form. Nearly every one lies in a single chunk, and is decoded where it lies. */
export class FieldText {
  #data: Buffer | undefined = undefined
  #start = 0
  #end = 0
  #blocks: ByteBlocks | undefined = undefined

  /** Adds bytes that do not change afterwards. */
  add(data: Buffer, start: number, end: number): void {
    if (this.#data === undefined) {
      this.#data = data
      this.#start = start
      this.#end = end
      return
    }
    if (this.#blocks === undefined) {
      this.#blocks = new ByteBlocks()
      this.#blocks.push(this.#data.subarray(this.#start, this.#end))
    }
    this.#blocks.push(data.subarray(start, end))
  }

  /** Takes all text out. @throws HttpError as `decodeText` */
  take(charset: string | undefined): string {
    const data = this.#data
    const blocks = this.#blocks
    this.#data = undefined
    this.#blocks = undefined
    if (data === undefined) return decodeText(NOTHING, charset)
    return blocks === undefined
      ? decodePart(data, this.#start, this.#end, charset)
      : decodeText(blocks.drain(), charset)
  }
}
