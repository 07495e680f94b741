import { isHttpError } from '../../src/core/errors.ts'

/** Ways to cut content into chunks: what is read must not depend on them. */
export type Feeding = (bytes: Uint8Array) => readonly Uint8Array[]

export const whole: Feeding = (bytes) => (bytes.length === 0 ? [] : [bytes])
export const inBytes: Feeding = (bytes) => Array.from(bytes, (byte) => Uint8Array.of(byte))
export const splitAt =
  (at: number): Feeding =>
  (bytes) =>
    [bytes.subarray(0, at), bytes.subarray(at)].filter((chunk) => chunk.length > 0)

/** Content as a source gives it: in chunks, one after the other. */
export async function* stream(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield chunk
}

export async function gather(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The status of the HttpError that `run` fails with; whatever else it throws is thrown on. */
export async function statusOf(run: () => unknown): Promise<number | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    if (isHttpError(error)) return error.status
    throw error
  }
}
