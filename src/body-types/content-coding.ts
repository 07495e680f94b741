import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { HttpError } from '../core/errors.ts'
import type { ContentCoding } from '../core/request-content.ts'
import { malformedBody, tooLarge } from './limits.ts'

interface DecodeLimits {
  /** The most decoded bytes; one more is 413. Default: no limit. */
  readonly limit?: number
  /** How many times larger than its coded form content may get, once it is over 64 KiB; more is 413. Default 100. */
  readonly ratio?: number
}

const CHUNK = 64 * 1024
/** Short content may compress as well as it likes. */
const RATIO_FREE = 64 * 1024

const DECODERS: Readonly<Record<ContentCoding, () => Transform & { readonly bytesWritten: number }>> = {
  gzip: () => createGunzip({ chunkSize: CHUNK }),
  deflate: () => createInflate({ chunkSize: CHUNK }),
  br: () => createBrotliDecompress({ chunkSize: CHUNK }),
}

/**
 * Decodes content, with back-pressure: the source is read no faster than the result, and no further than the limits.
 * @throws HttpError while reading, 413 for content that grows too large and 400 for content that is damaged, cut short, or
 *   followed by anything else
 */
export async function* decodeStream(
  source: AsyncIterable<Uint8Array>,
  coding: ContentCoding,
  { limit = Number.POSITIVE_INFINITY, ratio = 100 }: DecodeLimits = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = DECODERS[coding]()
  let taken = true
  let coded = 0
  let decoded = 0
  let wake = () => {}
  for (const event of ['readable', 'end', 'error']) decoder.on(event, () => wake())
  /** The next decoded chunk, or `undefined` when there is none before more is fed. */
  const next = async (): Promise<Uint8Array | undefined> => {
    for (;;) {
      const chunk: Uint8Array | null = decoder.read()
      if (chunk !== null) {
        decoded += chunk.length
        if (decoded > limit) throw tooLarge(limit)
        // Counted here, because no option of zlib's streams bounds what they put out.
        if (decoded > RATIO_FREE && decoded > coded * ratio) {
          throw new HttpError(413, 'ERR_TOO_LARGE', { detail: 'The content grows too much when it is decoded.' })
        }
        return chunk
      }
      if (decoder.errored) throw malformedBody('The content does not match its content coding.', decoder.errored)
      if (decoder.readableEnded || taken) return undefined
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  try {
    for await (const input of source) {
      coded += input.length
      taken = false
      decoder.write(input, () => {
        taken = true
        wake()
      })
      for (let chunk = await next(); chunk !== undefined; chunk = await next()) yield chunk
      if (decoder.readableEnded) break
    }
    taken = false
    decoder.end()
    for (let chunk = await next(); chunk !== undefined; chunk = await next()) yield chunk
    if (decoder.bytesWritten !== coded) throw malformedBody('Something follows the end of the coded content.')
  } finally {
    decoder.destroy()
  }
}
