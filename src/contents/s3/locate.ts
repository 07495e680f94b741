import type { LocateRequest } from '../types.ts'
import type { S3Client } from './client.ts'

/** Seconds from the signature until the beginning of a request; a transfer may last longer. */
const LIFETIME = 300
/** The headers that S3 takes over from a signed address. */
const OVERRIDABLE: readonly string[] = [
  'Cache-Control',
  'Content-Disposition',
  'Content-Encoding',
  'Content-Language',
  'Content-Type',
]

/** A signed address of an object, whose response says the same of the content as the service would. */
export function locateObject(
  client: S3Client,
  name: string,
  { method, headers, signal }: LocateRequest,
): Promise<string> {
  const query = Object.fromEntries(
    OVERRIDABLE.flatMap((field) =>
      headers[field] === undefined ? [] : [[`response-${field.toLowerCase()}`, headers[field]]],
    ),
  )
  return client.presign({ method, name, query, signal }, LIFETIME)
}
