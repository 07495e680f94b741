/** A list of a thousand names of 1024 bytes, each written as character references, has less. */
const MAX_SIZE = 16 * 1024 * 1024

/**
 * The text of a response that is read as a whole.
 * @throws Error where the service sends more than its interface ever does, so that memory stays bounded
 */
export async function readText({ body }: Response): Promise<string> {
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the rest.
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > MAX_SIZE) throw new Error(`The S3 service answered with more than ${MAX_SIZE} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
