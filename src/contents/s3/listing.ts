import { isDeepStrictEqual } from 'node:util'
import { createS3Error, type S3Client, type S3Response } from './client.ts'

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
