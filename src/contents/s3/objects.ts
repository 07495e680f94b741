/** The objects of a bucket: how content is put, located, removed and listed. */

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { HttpError } from '../../core/errors.ts'
import { isUnavailable, type LocateRequest, type PutContent } from '../types.ts'
import { createS3Error, type S3Client, type S3Response } from './client.ts'

/** Bytes of a part, all but the last: one is in memory for each upload that is under way. */
const PART_SIZE: number = 8 * 1024 * 1024
const MAX_PARTS = 10_000

/** A part that the service has. */
interface SentPart {
  readonly entityTag: string
  readonly digest: Buffer
}

/** Puts an object: at once up to 8 MiB, otherwise in parts. Nothing shows under its name before it is whole. */
export async function uploadObject(
  client: S3Client,
  name: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<PutContent> {
  const buffer = Buffer.allocUnsafeSlow(PART_SIZE)
  const parts: SentPart[] = []
  let uploadId: string | undefined
  let used = 0
  let size = 0
  try {
    signal?.throwIfAborted()
    for await (const chunk of body) {
      size += chunk.length
      for (let from = 0; from < chunk.length; ) {
        if (used === PART_SIZE) await sendPart()
        const part = chunk.subarray(from, from + PART_SIZE - used)
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
    return { size: await readSize(client, name, signal) }
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

async function sendBytes(
  client: S3Client,
  name: string,
  query: Readonly<Record<string, string>>,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<SentPart> {
  const digest = createHash('md5').update(body).digest()
  const headers = { 'Content-MD5': digest.toString('base64') }
  const response = await client.send({ method: 'PUT', name, query, headers, body, signal })
  if (response.status !== 200) throw createS3Error(response)
  const entityTag = response.headers.get('ETag') ?? ''
  if (isDigest(response) && entityTag !== `"${digest.toString('hex')}"`) {
    throw new Error(`The S3 service has other bytes than were sent: ${entityTag} instead of ${digest.toString('hex')}.`)
  }
  return { entityTag, digest }
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
  parts: readonly SentPart[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const list = parts.map(
    ({ entityTag }, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${entityTag}</ETag></Part>`,
  )
  const xmlns = 'http://s3.amazonaws.com/doc/2006-03-01/'
  const body = Buffer.from(`<CompleteMultipartUpload xmlns="${xmlns}">${list.join('')}</CompleteMultipartUpload>`)
  // The service begins its response before it has assembled the parts.
  const root = 'CompleteMultipartUploadResult'
  const response = await client.send({ method: 'POST', name, query: { uploadId }, body, signal, root })
  // An attempt before this one has completed it: the size tells.
  if (response.status !== 200 && response.status !== 404) throw createS3Error(response)
}

async function readSize(client: S3Client, name: string, signal: AbortSignal | undefined): Promise<number> {
  const response = await client.send({ method: 'HEAD', name, signal })
  if (response.status !== 200) throw createS3Error(response)
  return Number(response.headers.get('Content-Length'))
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
  const query = Object.fromEntries(
    OVERRIDABLE.flatMap((field) =>
      headers[field] === undefined ? [] : [[`response-${field.toLowerCase()}`, headers[field]]],
    ),
  )
  return client.presign({ method, name, query, signal }, LIFETIME)
}

/** An object, or an upload in parts that was never completed. */
export interface ListedObject {
  readonly name: string
  readonly age: number
  /** Names the upload; `undefined` for an object. */
  readonly uploadId: string | undefined
}

/** A service that does not list uploads in parts says so by one of these. */
const NOT_IMPLEMENTED: readonly number[] = [400, 405, 501]

/** Every object below a prefix, page by page, in the order of the UTF-8 bytes of names. */
export async function* listObjects(client: S3Client, prefix: string): AsyncGenerator<ListedObject> {
  for (let after = ''; ; ) {
    // By the last name: the tokens of some services break.
    const query = { 'list-type': '2', prefix, ...(after === '' ? {} : { 'start-after': after }) }
    const response = await client.send({ method: 'GET', query, root: 'ListBucketResult' })
    const { text } = response
    if (response.status !== 200) throw createS3Error(response)
    const first = readElement(text, 'Key')
    const isAfter = first === '' || Buffer.compare(Buffer.from(first), Buffer.from(after)) > 0
    if (after !== '' && !isAfter) throw new Error(`The S3 service lists a name twice: ${first}.`)
    for (const entry of readElements(text, 'Contents')) {
      after = readElement(entry, 'Key')
      yield { name: after, age: ageOf(response, readElement(entry, 'LastModified')), uploadId: undefined }
    }
    if (readElement(text, 'IsTruncated') !== 'true' || after === '') return
  }
}

/** Every upload in parts below a prefix that was not completed. */
export async function* listUploads(client: S3Client, prefix: string): AsyncGenerator<ListedObject> {
  for (let markers: Record<string, string> = {}; ; ) {
    const response = await client.send({ method: 'GET', query: { uploads: '', prefix, ...markers } })
    const { status, text } = response
    // Some services answer with a list of objects.
    if (NOT_IMPLEMENTED.includes(status) || (status === 200 && !text.includes('<ListMultipartUploadsResult'))) return
    if (status !== 200) throw createS3Error(response)
    for (const entry of readElements(text, 'Upload')) {
      const age = ageOf(response, readElement(entry, 'Initiated'))
      yield { name: readElement(entry, 'Key'), age, uploadId: readElement(entry, 'UploadId') }
    }
    if (readElement(text, 'IsTruncated') !== 'true') return
    const next = {
      'key-marker': readElement(text, 'NextKeyMarker'),
      'upload-id-marker': readElement(text, 'NextUploadIdMarker'),
    }
    if (isDeepStrictEqual(next, markers)) throw new Error('The S3 service lists a page of uploads twice.')
    markers = next
  }
}

/** By the clock of the service alone. */
function ageOf(response: S3Response, date: string): number {
  return Date.parse(response.headers.get('Date') ?? '') - Date.parse(date)
}

function readElements(text: string, name: string): readonly string[] {
  return [...text.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, content]) => content!)
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text of the first element of a name; empty when there is none. */
export function readElement(text: string, name: string): string {
  const content = new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1] ?? ''
  return content.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (entity, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    return ENTITIES[name] ?? entity
  })
}
