import { createHash } from 'node:crypto'
import { HttpError } from '../../core/errors.ts'
import type { MaybePromise } from '../../core/handler.ts'

/** What requests are signed with. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** The name of an object; left out for the bucket itself. */
  readonly name?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
}

/** The part of aws4fetch that is used; its own declarations need those of a browser. */
type Signer = new (request: {
  readonly method: string
  readonly url: string
  readonly region: string
  readonly service: 's3'
  readonly headers: Readonly<Record<string, string>>
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}) => { sign(): Promise<{ readonly url: URL; readonly headers: Headers }> }

/** Sends signed requests to one bucket. */
export interface S3Client {
  /**
   * Sends a request until the service answers it with something else than an overload or a failure of its own.
   * @throws HttpError 503 while the service is away
   * @throws the reason of the signal
   */
  send(request: S3Request): Promise<Response>
}

export interface S3ClientOptions {
  readonly endpoint: URL
  readonly region: string
  readonly bucket: string
  readonly readCredentials: () => MaybePromise<S3Credentials>
  /** Milliseconds until the header of a response. */
  readonly timeout: number
}

const MAX_ATTEMPTS = 4
const FIRST_PAUSE = 100
/** Overloads and failures of the service, which end by themselves. */
const TRANSIENT: readonly number[] = [408, 429, 500, 502, 503, 504]

export function createS3Client({ endpoint, region, bucket, readCredentials, timeout }: S3ClientOptions): S3Client {
  const base = `${endpoint.href.replace(/\/$/, '')}/${bucket}`

  async function attempt(request: S3Request): Promise<Response> {
    const { method, name, query, headers, body = new Uint8Array(0), signal } = request
    const url = new URL(name === undefined ? base : `${base}/${name}`)
    for (const [key, value] of Object.entries(query ?? {})) url.searchParams.set(key, value)
    const Signer = await loadSigner()
    const signed = await new Signer({
      ...(await readCredentials()),
      ...{ method, url: url.href, region, service: 's3' },
      // The service refuses a body with another digest.
      headers: { ...headers, 'X-Amz-Content-Sha256': createHash('sha256').update(body).digest('hex') },
    }).sign()
    // Not signed: a proxy may change it. Without it some services code the bytes.
    signed.headers.set('Accept-Encoding', 'identity')
    const timer = new AbortController()
    const late = setTimeout(() => timer.abort(new Error(`No response within ${timeout} ms.`)), timeout)
    try {
      return await fetch(signed.url, {
        ...{ method, headers: signed.headers, redirect: 'manual' },
        ...(method === 'PUT' || method === 'POST' ? { body: body as Uint8Array<ArrayBuffer> } : {}),
        signal: signal === undefined ? timer.signal : AbortSignal.any([signal, timer.signal]),
      })
    } finally {
      clearTimeout(late)
    }
  }

  return {
    async send(request) {
      const { signal } = request
      for (let count = 1; ; count++) {
        signal?.throwIfAborted()
        const response = await attempt(request).catch((error: unknown) => {
          signal?.throwIfAborted()
          if (error instanceof SetupError) throw error.cause
          return error as Error
        })
        const isTransient = response instanceof Error || TRANSIENT.includes(response.status)
        if (!isTransient) return response
        const cause = response instanceof Error ? response : await createS3Error(response)
        if (count === MAX_ATTEMPTS) throw createAwayError(cause)
        // Without chance in it, those that met would meet again.
        await sleep(FIRST_PAUSE * 2 ** count * Math.random(), signal)
      }
    },
  }
}

/** The service refused a request: wrong credentials, no such bucket, a clock that is minutes off. */
export async function createS3Error(response: Response): Promise<Error> {
  const text = await response.text().catch(() => '')
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1] ?? 'no code'
  return new Error(`The S3 service answered ${response.status} (${code}).`)
}

export function createAwayError(cause: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause })
}

/** A failure that no further attempt would mend. */
class SetupError extends Error {}

async function loadSigner(): Promise<Signer> {
  // An optional package: by a variable, so that no bundler looks for it.
  const name: string = 'aws4fetch'
  try {
    return ((await import(name)) as { readonly AwsV4Signer: Signer }).AwsV4Signer
  } catch (error) {
    const cause = new Error('s3Contents needs the package aws4fetch: npm install aws4fetch.', { cause: error })
    throw new SetupError('setup', { cause })
  }
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
