import { createS3Error, type S3Client } from './client.ts'

/** An object, or an upload in parts that was never completed. */
export interface ListedObject {
  readonly name: string
  readonly age: number
  /** Names the upload; `undefined` for an object. */
  readonly uploadId: string | undefined
}

/** A service that does not list uploads in parts says so by one of these. */
const NOT_IMPLEMENTED: readonly number[] = [400, 405, 501]

/** Every object below a prefix, page by page. */
export async function* listObjects(client: S3Client, prefix: string): AsyncGenerator<ListedObject> {
  for (let after = ''; ; ) {
    // By the last name: the tokens of some services break.
    const query = { 'list-type': '2', prefix, ...(after === '' ? {} : { 'start-after': after }) }
    const response = await client.send({ method: 'GET', query })
    if (response.status !== 200) throw await createS3Error(response)
    const text = await response.text()
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
    if (NOT_IMPLEMENTED.includes(response.status)) return void (await response.text())
    if (response.status !== 200) throw await createS3Error(response)
    const text = await response.text()
    for (const entry of readElements(text, 'Upload')) {
      const age = ageOf(response, readElement(entry, 'Initiated'))
      yield { name: readElement(entry, 'Key'), age, uploadId: readElement(entry, 'UploadId') }
    }
    if (readElement(text, 'IsTruncated') !== 'true') return
    markers = {
      'key-marker': readElement(text, 'NextKeyMarker'),
      'upload-id-marker': readElement(text, 'NextUploadIdMarker'),
    }
  }
}

/** By the clock of the service alone. */
function ageOf(response: Response, date: string): number {
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
