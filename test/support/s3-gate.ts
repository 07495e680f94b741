import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'

/** What a test makes of a request before it is passed on. `undefined`: it is passed on as it is. */
export type Interference = (req: IncomingMessage, res: ServerResponse) => 'done' | undefined

/** A service with the interface of S3: s3rver behind a gate that checks every signature and digest. */
export interface S3Service {
  readonly endpoint: string
  readonly requests: string[]
  interfere: Interference
  close(): Promise<void>
}

export const CREDENTIALS = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' } as const
export const BUCKET = 'media'
const REGION = 'eu-test-1'

export async function startS3(): Promise<S3Service> {
  const directory = await mkdtemp(join(tmpdir(), 's3-'))
  const inner = new S3rver({
    ...{ port: 0, address: '127.0.0.1', silent: true, directory },
    configureBuckets: [{ name: BUCKET, configs: [] }],
  })
  const { port: innerPort } = (await inner.run()) as AddressInfo
  /** Uploads in parts, which s3rver neither lists nor ends. */
  const uploads = new Map<string, { readonly key: string; readonly initiated: string }>()
  const service = { requests: [] as string[], interfere: (() => undefined) as Interference }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const url = new URL(req.url!, 'http://service')
    service.requests.push(`${req.method} ${req.url}`)
    const refusal = findFault(req, url, body)
    if (refusal !== undefined) return refuse(res, 403, refusal)
    if (service.interfere(req, res) === 'done') return
    const uploadId = url.searchParams.get('uploadId')
    if (uploadId !== null && !uploads.has(uploadId)) return refuse(res, 404, 'NoSuchUpload')
    if (req.method === 'DELETE' && uploadId !== null) {
      uploads.delete(uploadId)
      res.writeHead(204).end()
    } else if (req.method === 'GET' && url.searchParams.has('uploads')) {
      res.writeHead(200, { 'Content-Type': 'application/xml' }).end(listUploads(url.searchParams.get('prefix') ?? ''))
    } else {
      pass(req, url, body, res)
    }
  }

  function listUploads(prefix: string): string {
    const entries = [...uploads].filter(([, { key }]) => key.startsWith(prefix))
    const items = entries.map(
      ([id, { key, initiated }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${initiated}</Initiated></Upload>`,
    )
    return `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${items.join('')}</ListMultipartUploadsResult>`
  }

  function pass(req: IncomingMessage, url: URL, body: Buffer, res: ServerResponse): void {
    const { authorization: _, ...headers } = req.headers
    for (const name of [...url.searchParams.keys()]) if (name.startsWith('X-Amz-')) url.searchParams.delete(name)
    const path = url.pathname + url.search
    // s3rver takes it for the whole object.
    const isFirstByte = headers.range === 'bytes=0-0'
    if (isFirstByte) headers.range = 'bytes=0-1'
    const outer = request({ port: innerPort, host: '127.0.0.1', method: req.method, path, headers }, (answer) => {
      const parts: Buffer[] = []
      if (req.method === 'POST' || isFirstByte) {
        answer.on('data', (part: Buffer) => parts.push(part))
        answer.on('end', () => {
          const all = Buffer.concat(parts)
          if (req.method === 'POST') note(url, all.toString())
          const range = answer.headers['content-range']
          if (!isFirstByte || range === undefined) res.writeHead(answer.statusCode!, answer.headers).end(all)
          else res.writeHead(206, { 'Content-Range': range.replace('0-1/', '0-0/') }).end(all.subarray(0, 1))
        })
        return
      }
      res.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(res)
      res.on('close', () => answer.destroy())
    })
    outer.on('error', () => res.destroy())
    outer.end(body)
  }

  function note(url: URL, answer: string): void {
    const key = url.pathname.slice(BUCKET.length + 2)
    const begun = /<UploadId>([^<]+)</.exec(answer)?.[1]
    if (begun !== undefined) uploads.set(begun, { key, initiated: new Date().toISOString() })
    else uploads.delete(url.searchParams.get('uploadId') ?? '')
  }

  const gate = createServer((req, res) => void serve(req, res).catch(() => res.destroy()))
  await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve))
  return Object.assign(service, {
    endpoint: `http://127.0.0.1:${(gate.address() as AddressInfo).port}`,
    async close() {
      gate.closeAllConnections()
      await new Promise((resolve) => gate.close(resolve))
      await inner.close()
      await rm(directory, { recursive: true, force: true })
    },
  })
}

function refuse(res: ServerResponse, status: number, code: string): void {
  res.writeHead(status, { 'Content-Type': 'application/xml' }).end(`<Error><Code>${code}</Code></Error>`)
}

/** The code of the error for a signature (version 4) or a digest that is wrong. */
function findFault(req: IncomingMessage, url: URL, body: Buffer): string | undefined {
  const md5 = req.headers['content-md5']
  if (md5 !== undefined && md5 !== createHash('md5').update(body).digest('base64')) return 'BadDigest'
  const inQuery = url.searchParams.get('X-Amz-Signature')
  if (inQuery !== null) return checkQuery(req, url, inQuery)
  const pattern = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/
  const [, user, scope, names, signature] = pattern.exec(req.headers.authorization ?? '') ?? []
  if (user !== CREDENTIALS.accessKeyId) return 'InvalidAccessKeyId'
  const digest = req.headers['x-amz-content-sha256']
  if (digest !== createHash('sha256').update(body).digest('hex')) return 'XAmzContentSHA256Mismatch'
  const expected = sign(req, url, names!, scope!, req.headers['x-amz-date'] as string, digest)
  return isEqual(signature!, expected) ? undefined : 'SignatureDoesNotMatch'
}

function checkQuery(req: IncomingMessage, url: URL, signature: string): string | undefined {
  const { searchParams } = url
  const date = searchParams.get('X-Amz-Date')!
  const time = Date.parse(date.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (Date.now() > time + 1000 * Number(searchParams.get('X-Amz-Expires'))) return 'AccessDenied'
  const [user, ...scope] = searchParams.get('X-Amz-Credential')!.split('/')
  if (user !== CREDENTIALS.accessKeyId) return 'InvalidAccessKeyId'
  const names = searchParams.get('X-Amz-SignedHeaders')!
  const expected = sign(req, url, names, scope.join('/'), date, 'UNSIGNED-PAYLOAD')
  return isEqual(signature, expected) ? undefined : 'SignatureDoesNotMatch'
}

function sign(req: IncomingMessage, url: URL, names: string, scope: string, date: string, digest: string): string {
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map((pair) => pair.map(encode).join('='))
    .sort()
    .join('&')
  const headers = names.split(';').map((name) => `${name}:${String(req.headers[name]).trim()}\n`)
  const canonical = [req.method, url.pathname, query, headers.join(''), names, digest].join('\n')
  const text = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const [day, region] = scope.split('/')
  if (region !== REGION) return ''
  const hmac = (key: string | Buffer, value: string): Buffer => createHmac('sha256', key).update(value).digest()
  const keys = [day!, region, 's3', 'aws4_request']
  const key = keys.reduce<string | Buffer>(hmac, `AWS4${CREDENTIALS.secretAccessKey}`)
  return hmac(key, text).toString('hex')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function isEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
