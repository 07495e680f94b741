import { isAscii } from 'node:buffer'

/** Bytes up to this length that are ASCII are kept as text: half the memory, and sent without another copy. */
const TEXT_LIMIT = 16 * 1024

/** Small ASCII content as text; `undefined` for what stays bytes. */
export function readAsText(bytes: Uint8Array): string | undefined {
  if (bytes.length > TEXT_LIMIT || !isAscii(bytes)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}
