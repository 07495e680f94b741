import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFault } from './s3-signatures.ts'

/** What a test makes of a request before the service does. `undefined`: the service answers it. */
export type Interference = (req: IncomingMessage, res: ServerResponse) => 'done' | undefined

/**
 * A service with the interface of S3, in the memory of this process. It checks signatures, digests, Content-Length, the
 * clock of the client and the sizes of parts as Amazon does, and ignores conditions.
 */
export interface S3Service {
  readonly endpoint: string
  /** Method and target of each request. */
  readonly requests: string[]
  interfere: Interference
  /** Milliseconds by which its clock differs from that of this process. */
  clockOffset: number
  /** Entries in a page of a list. */
  pageSize: number
  close(): Promise<void>
}

export const BUCKET = 'media'
const MIN_PART_SIZE = 5 * 1024 * 1024

interface S3Object {
  readonly bytes: Buffer
  readonly entityTag: string
  readonly modified: number
}

interface S3Upload {
  readonly name: string
  readonly initiated: number
  readonly parts: Map<number, S3Object>
}

export async function startS3(): Promise<S3Service> {
  const objects = new Map<string, S3Object>()
  const uploads = new Map<string, S3Upload>()
  const service = {
    requests: [] as string[],
    interfere: (() => undefined) as Interference,
    clockOffset: 0,
    pageSize: 1000,
  }
  const now = (): number => Date.now() + service.clockOffset

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const url = new URL(req.url!, 'http://service')
    res.setHeader('Date', new Date(now()).toUTCString())
    service.requests.push(`${req.method} ${req.url}`)
    const fault = findFault(req, url, body, now())
    if (fault !== undefined) return refuse(res, 403, fault)
    const isWithoutLength = req.method === 'PUT' && req.headers['content-length'] === undefined
    if (isWithoutLength) return refuse(res, 411, 'MissingContentLength')
    if (service.interfere(req, res) === 'done') return
    const { searchParams } = new URL(req.url!, 'http://service')
    const [, bucket, ...segments] = decodeURIComponent(url.pathname).split('/')
    if (bucket !== BUCKET) return refuse(res, 404, 'NoSuchBucket')
    const name = segments.join('/')
    if (name !== '') answerObject(req, res, name, searchParams, body)
    else if (searchParams.has('uploads')) listUploads(res, searchParams)
    else listObjects(res, searchParams)
  }

  function answerObject(req: IncomingMessage, res: ServerResponse, name: string, query: URLSearchParams, body: Buffer) {
    const uploadId = query.get('uploadId')
    if (uploadId !== null) return answerUpload(req, res, uploadId, query, body)
    if (req.method === 'POST') {
      const id = randomUUID()
      uploads.set(id, { name, initiated: now(), parts: new Map() })
      return sendXml(res, 'InitiateMultipartUploadResult', `<UploadId>${id}</UploadId>`)
    }
    if (req.method === 'PUT') {
      const object = createObject(body)
      objects.set(name, object)
      return void res.writeHead(200, { ETag: object.entityTag }).end()
    }
    if (req.method === 'DELETE') {
      objects.delete(name)
      return void res.writeHead(204).end()
    }
    const object = objects.get(name)
    if (object === undefined) return refuse(res, 404, 'NoSuchKey')
    for (const [parameter, value] of query) {
      if (parameter.startsWith('response-')) res.setHeader(parameter.slice('response-'.length), value)
    }
    sendObject(req, res, object)
  }

  function answerUpload(req: IncomingMessage, res: ServerResponse, id: string, query: URLSearchParams, body: Buffer) {
    const upload = uploads.get(id)
    if (upload === undefined) return refuse(res, 404, 'NoSuchUpload')
    if (req.method === 'PUT') {
      const part = createObject(body)
      upload.parts.set(Number(query.get('partNumber')), part)
      return void res.writeHead(200, { ETag: part.entityTag }).end()
    }
    if (req.method === 'DELETE') {
      uploads.delete(id)
      return void res.writeHead(204).end()
    }
    const parts: Buffer[] = []
    for (const [, number, tag] of body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]+)<\/ETag>/g)) {
      const part = upload.parts.get(Number(number))
      if (part === undefined || part.entityTag !== tag || Number(number) !== parts.length + 1)
        return refuse(res, 400, 'InvalidPart')
      parts.push(part.bytes)
    }
    if (parts.length === 0) return refuse(res, 400, 'MalformedXML')
    if (parts.slice(0, -1).some((part) => part.length < MIN_PART_SIZE)) return refuse(res, 400, 'EntityTooSmall')
    const bytes = Buffer.concat(parts)
    const digests = [...upload.parts.values()].map((part) => part.entityTag).join('')
    const entityTag = `"${createHash('md5').update(digests).digest('hex')}-${parts.length}"`
    objects.set(upload.name, { bytes, entityTag, modified: now() })
    uploads.delete(id)
    sendXml(res, 'CompleteMultipartUploadResult', `<Key>${upload.name}</Key><ETag>${escapeXml(entityTag)}</ETag>`)
  }

  function createObject(bytes: Buffer): S3Object {
    return { bytes, entityTag: `"${createHash('md5').update(bytes).digest('hex')}"`, modified: now() }
  }

  function listObjects(res: ServerResponse, query: URLSearchParams): void {
    const [prefix, after] = [query.get('prefix') ?? '', query.get('start-after') ?? '']
    const inOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
    const below = [...objects.keys()].filter((name) => name.startsWith(prefix))
    const names = below.filter((name) => inOrder(name, after) > 0).sort(inOrder)
    const items = names.slice(0, service.pageSize).map((name) => {
      const date = new Date(objects.get(name)!.modified).toISOString()
      return `<Contents><Key>${escapeXml(name)}</Key><LastModified>${date}</LastModified></Contents>`
    })
    sendXml(res, 'ListBucketResult', `<IsTruncated>${items.length < names.length}</IsTruncated>${items.join('')}`)
  }

  function listUploads(res: ServerResponse, query: URLSearchParams): void {
    const prefix = query.get('prefix') ?? ''
    const key = query.get('key-marker') ?? ''
    const idAfter = query.get('upload-id-marker')
    // Without the marker of an upload the list goes on behind all uploads of the name.
    const isBehind = (id: string, name: string) => name > key || (idAfter !== null && name === key && id > idAfter)
    const found = [...uploads]
      .filter(([id, { name }]) => name.startsWith(prefix) && isBehind(id, name))
      .sort(([id, { name }], [otherId, other]) => (name + id < other.name + otherId ? -1 : 1))
    const page = found.slice(0, service.pageSize)
    const items = page.map(([id, { name, initiated }]) => {
      const date = new Date(initiated).toISOString()
      return `<Upload><Key>${escapeXml(name)}</Key><UploadId>${id}</UploadId><Initiated>${date}</Initiated></Upload>`
    })
    const [id, last] = page.at(-1) ?? []
    const markers =
      page.length === found.length
        ? '<IsTruncated>false</IsTruncated>'
        : `<IsTruncated>true</IsTruncated><NextKeyMarker>${last!.name}</NextKeyMarker><NextUploadIdMarker>${id}</NextUploadIdMarker>`
    sendXml(res, 'ListMultipartUploadsResult', markers + items.join(''))
  }

  const server = createServer((req, res) => void serve(req, res).catch(() => res.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(service, {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

function sendObject(req: IncomingMessage, res: ServerResponse, { bytes, entityTag, modified }: S3Object): void {
  const headers = { ETag: entityTag, 'Last-Modified': new Date(modified).toUTCString(), 'Accept-Ranges': 'bytes' }
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '') ?? []
  if (from === undefined) {
    res.writeHead(200, { ...headers, 'Content-Length': bytes.length })
    return void res.end(req.method === 'HEAD' ? undefined : bytes)
  }
  const first = Number(from)
  const last = Math.min(to === '' ? Number.POSITIVE_INFINITY : Number(to), bytes.length - 1)
  if (first > last) return refuse(res, 416, 'InvalidRange')
  const range = { 'Content-Range': `bytes ${first}-${last}/${bytes.length}`, 'Content-Length': last - first + 1 }
  res.writeHead(206, { ...headers, ...range }).end(req.method === 'HEAD' ? undefined : bytes.subarray(first, last + 1))
}

function sendXml(res: ServerResponse, root: string, content: string): void {
  res.writeHead(200, { 'Content-Type': 'application/xml' }).end(`<?xml version="1.0"?><${root}>${content}</${root}>`)
}

function refuse(res: ServerResponse, status: number, code: string): void {
  res.writeHead(status, { 'Content-Type': 'application/xml' }).end(`<Error><Code>${code}</Code></Error>`)
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
