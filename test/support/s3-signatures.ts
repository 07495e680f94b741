import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const CREDENTIALS = { accessKeyId: 'tests', secretAccessKey: 'secret of tests' } as const
export const REGION = 'eu-test-1'
/** Milliseconds that the clock of a client may be away, as in Amazon S3. */
const MAX_SKEW = 15 * 60 * 1000

/** The code of the error for a signature (version 4) or a digest that is wrong. */
export function findFault(req: IncomingMessage, url: URL, body: Buffer, now: number): string | undefined {
  const md5 = req.headers['content-md5']
  if (md5 !== undefined && md5 !== createHash('md5').update(body).digest('base64')) return 'BadDigest'
  const inQuery = url.searchParams.get('X-Amz-Signature')
  if (inQuery !== null) return checkQuery(req, url, inQuery, now)
  const pattern = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/
  const [, user, scope, names, signature] = pattern.exec(req.headers.authorization ?? '') ?? []
  if (user !== CREDENTIALS.accessKeyId) return 'InvalidAccessKeyId'
  const digest = req.headers['x-amz-content-sha256']
  if (digest !== createHash('sha256').update(body).digest('hex')) return 'XAmzContentSHA256Mismatch'
  const date = req.headers['x-amz-date'] as string
  if (Math.abs(now - parseTime(date)) > MAX_SKEW) return 'RequestTimeTooSkewed'
  const expected = sign(req, url, names!, scope!, date, digest)
  return isEqual(signature!, expected) ? undefined : 'SignatureDoesNotMatch'
}

function checkQuery(req: IncomingMessage, url: URL, signature: string, now: number): string | undefined {
  const { searchParams } = url
  const date = searchParams.get('X-Amz-Date')!
  if (now > parseTime(date) + 1000 * Number(searchParams.get('X-Amz-Expires'))) return 'AccessDenied'
  const [user, ...scope] = searchParams.get('X-Amz-Credential')!.split('/')
  if (user !== CREDENTIALS.accessKeyId) return 'InvalidAccessKeyId'
  const names = searchParams.get('X-Amz-SignedHeaders')!
  const expected = sign(req, url, names, scope.join('/'), date, 'UNSIGNED-PAYLOAD')
  return isEqual(signature, expected) ? undefined : 'SignatureDoesNotMatch'
}

function parseTime(date: string): number {
  return Date.parse(date.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z'))
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
