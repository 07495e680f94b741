/** The objects of a bucket: how content is put, located and removed. */

import { createHash } from 'node:crypto'
import { HttpError } from '../../core/errors.ts'
import { createUnavailableError, isUnavailable } from '../../core/unavailable.ts'
import type { LocateRequest, PutContent } from '../types.ts'
import { createS3Error, type S3Client, type S3Response } from './client.ts'
import { readElement } from './lists.ts'

/** Bytes of a part, all but the last: one is in memory for each upload that is under way. */
const PART_SIZE: number = 8 * 1024 * 1024
const MAX_PARTS = 10_000

/** Puts an object: at once up to the size of a part, otherwise in parts. Nothing shows under its name before it is whole. */
export async function uploadObject(
  client: S3Client,
  name: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
  partSize: number = PART_SIZE,
): Promise<PutContent> {
  const buffer = Buffer.allocUnsafeSlow(partSize)
  /** The entity tags of the parts that the service has. */
  const parts: string[] = []
  let uploadId: string | undefined
  let used = 0
  let size = 0
  try {
    signal?.throwIfAborted()
    for await (const chunk of body) {
      size += chunk.length
      for (let from = 0; from < chunk.length; ) {
        if (used === partSize) await sendPart()
        const part = chunk.subarray(from, from + partSize - used)
        buffer.set(part, used)
        used += part.length
        from += part.length
      }
    }
    signal?.throwIfAborted()
    if (uploadId === undefined) {
      await sendBytes(client, name, {}, buffer.subarray(0, used), signal)
    } else {
      await sendPart()
      await completeUpload(client, name, uploadId, parts, signal)
    }
    const response = await client.send({ method: 'HEAD', name, signal })
    // The sweep has ended the upload between its last part and its completion.
    if (response.status === 404) throw createUnavailableError(createS3Error(response))
    if (response.status !== 200) throw createS3Error(response)
    return { size: Number(response.headers.get('Content-Length')) }
  } catch (error) {
    const removed = giveUp().catch(() => {})
    // The service is away, or the client is: the caller need not wait once more.
    if (signal?.aborted !== true && !isUnavailable(error)) await removed
    throw error
  }

  async function sendPart(): Promise<void> {
    uploadId ??= await beginUpload(client, name, signal)
    if (parts.length === MAX_PARTS) throw new HttpError(413, 'ERR_TOO_LARGE')
    const query = { partNumber: String(parts.length + 1), uploadId }
    parts.push(await sendBytes(client, name, query, buffer.subarray(0, used), signal))
    used = 0
  }

  async function giveUp(): Promise<void> {
    if (uploadId !== undefined) await removeObject(client, name, uploadId)
    // Its bytes may have arrived although the response did not.
    if (size > 0) await removeObject(client, name)
  }
}

async function beginUpload(client: S3Client, name: string, signal: AbortSignal | undefined): Promise<string> {
  const root = 'InitiateMultipartUploadResult'
  const response = await client.send({ method: 'POST', name, query: { uploads: '' }, signal, root })
  if (response.status !== 200) throw createS3Error(response)
  return readElement(response.text, 'UploadId')
}

/** @returns the entity tag */
async function sendBytes(
  client: S3Client,
  name: string,
  query: Readonly<Record<string, string>>,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<string> {
  const digest = createHash('md5').update(body).digest()
  const headers = { 'Content-MD5': digest.toString('base64') }
  const response = await client.send({ method: 'PUT', name, query, headers, body, signal })
  if (response.status !== 200) throw createS3Error(response)
  const entityTag = response.headers.get('ETag') ?? ''
  if (isDigest(response) && entityTag !== `"${digest.toString('hex')}"`) {
    throw new Error(`The S3 service has other bytes than were sent: ${entityTag} instead of ${digest.toString('hex')}.`)
  }
  return entityTag
}

/** Whether an ETag is the MD5 digest of the bytes: not with every kind of encryption. */
function isDigest({ headers }: S3Response): boolean {
  const encryption = headers.get('x-amz-server-side-encryption') ?? 'AES256'
  const isByClient = headers.has('x-amz-server-side-encryption-customer-algorithm')
  return encryption === 'AES256' && !isByClient && /^"[0-9a-f]{32}"$/.test(headers.get('ETag') ?? '')
}

async function completeUpload(
  client: S3Client,
  name: string,
  uploadId: string,
  parts: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const list = parts.map((tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
  const xmlns = 'http://s3.amazonaws.com/doc/2006-03-01/'
  const body = Buffer.from(`<CompleteMultipartUpload xmlns="${xmlns}">${list.join('')}</CompleteMultipartUpload>`)
  // The service begins its response before it has assembled the parts. With moto the name ends in "Response".
  const root = 'CompleteMultipartUpload'
  const response = await client.send({ method: 'POST', name, query: { uploadId }, body, signal, root })
  // An attempt before this one has completed it: the size tells.
  if (response.status !== 200 && response.status !== 404) throw createS3Error(response)
}

/** Removes an object, or an upload in parts; succeeds when there is none. */
export async function removeObject(client: S3Client, name: string, uploadId?: string): Promise<void> {
  const query = uploadId === undefined ? {} : { uploadId }
  const response = await client.send({ method: 'DELETE', name, query })
  if (![200, 204, 404].includes(response.status)) throw createS3Error(response)
}

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
  const query: Record<string, string> = {}
  for (const field of OVERRIDABLE) {
    if (headers[field] !== undefined) query[`response-${field.toLowerCase()}`] = headers[field]
  }
  return client.presign({ method, name, query, signal }, LIFETIME)
}
