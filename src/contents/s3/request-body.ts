/** Bytes. */
const PIECE_SIZE = 65_536

/**
 * The members of a `fetch` request that hold its content. The `fetch` of Node copies bytes, and 64 MiB of copies wait until
 * V8 frees them; a stream with Content-Length it sends as it is. With it an upload of a gigabyte grows the process by 20 MiB
 * in place of 60. Other runtimes send a stream chunked, which S3 refuses.
 * @param headers get Content-Length where it is needed
 */
export function prepareBody(body: Uint8Array, headers: Headers): Pick<RequestInit, 'body' | 'duplex'> {
  const isUndici = process.versions['undici'] !== undefined
  if (!isUndici || body.length <= PIECE_SIZE) return { body: body as Uint8Array<ArrayBuffer> }
  headers.set('Content-Length', String(body.length))
  return { body: streamPieces(body), duplex: 'half' }
}

function streamPieces(body: Uint8Array): ReadableStream<Uint8Array> {
  let from = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (from >= body.length) return controller.close()
        controller.enqueue(body.subarray(from, from + PIECE_SIZE))
        from += PIECE_SIZE
      },
    },
    { highWaterMark: 0 },
  )
}
