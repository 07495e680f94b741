/** What is in a bucket, and the few elements that are read of the XML of a service. */

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

/**
 * Every object below a prefix, page by page, in the order of the UTF-8 bytes of names.
 * @throws Error for a list that would never end
 */
export async function* listObjects(client: S3Client, prefix: string): AsyncGenerator<ListedObject> {
  for (let after = '', isLast = false; !isLast; ) {
    // By the last name: the tokens of some services break.
    const start = after
    const query = { 'list-type': '2', prefix, ...(start === '' ? {} : { 'start-after': start }) }
    const response = await client.send({ method: 'GET', query, root: 'ListBucketResult' })
    const { text } = response
    if (response.status !== 200) throw createS3Error(response)
    const entries = readElements(text, 'Contents')
    isLast = isLastPage(text, entries)
    for (const entry of entries) {
      const name = readElement(entry, 'Key')
      if (!isBehind(name, start)) throw new Error(`The S3 service lists a name twice: ${name}.`)
      // A page that is not in order must not lead back.
      if (isBehind(name, after)) after = name
      yield { name, age: ageOf(response, readElement(entry, 'LastModified')), uploadId: undefined }
    }
  }
}

function isBehind(name: string, other: string): boolean {
  return Buffer.compare(Buffer.from(name), Buffer.from(other)) > 0
}

/** @throws Error for a page that says that others follow, and says nothing of where they begin */
function isLastPage(text: string, entries: readonly string[]): boolean {
  if (readElement(text, 'IsTruncated') !== 'true') return true
  if (entries.length > 0) return false
  throw new Error('The S3 service lists a page without entries that is not the last.')
}

/**
 * Every upload in parts below a prefix that was not completed.
 * @throws Error for a list that would never end
 */
export async function* listUploads(client: S3Client, prefix: string): AsyncGenerator<ListedObject> {
  const seen = new Set<string>()
  for (let markers: Record<string, string> = {}; ; ) {
    const response = await client.send({ method: 'GET', query: { uploads: '', prefix, ...markers } })
    const { status, text } = response
    // Some services answer with a list of objects.
    if (NOT_IMPLEMENTED.includes(status) || (status === 200 && !text.includes('<ListMultipartUploadsResult'))) return
    if (status !== 200) throw createS3Error(response)
    const entries = readElements(text, 'Upload')
    const isLast = isLastPage(text, entries)
    for (const entry of entries) {
      const age = ageOf(response, readElement(entry, 'Initiated'))
      yield { name: readElement(entry, 'Key'), age, uploadId: readElement(entry, 'UploadId') }
    }
    if (isLast) return
    markers = {
      'key-marker': readElement(text, 'NextKeyMarker'),
      'upload-id-marker': readElement(text, 'NextUploadIdMarker'),
    }
    const next = JSON.stringify(markers)
    if (seen.has(next)) throw new Error('The S3 service lists a page of uploads twice.')
    seen.add(next)
  }
}

/** By the clock of the service alone. */
function ageOf(response: S3Response, date: string): number {
  return Date.parse(response.headers.get('Date') ?? '') - Date.parse(date)
}

/** The content of every element of a name, as it stands. An element that does not end is passed over. */
function readElements(text: string, name: string): readonly string[] {
  const end = `</${name}>`
  const pieces = text.split(`<${name}>`).slice(1)
  return pieces.filter((piece) => piece.includes(end)).map((piece) => piece.slice(0, piece.indexOf(end)))
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
