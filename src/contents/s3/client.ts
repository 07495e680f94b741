import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../../core/errors.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { createUnavailableError } from '../../core/unavailable.ts'
import { beforeAbort, createDeadline, type Deadline, prepareBody, readText } from './exchange.ts'

/** What requests are signed with. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined
}

interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** The name of an object; left out for the bucket itself. */
  readonly name?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
  /** How the element begins that a 200 must hold to its end: a service may begin with 200 and fail afterwards. */
  readonly root?: string
  /** Leaves the content of a success to be read as a stream. */
  readonly isStream?: true
}

export interface S3Response {
  readonly status: number
  readonly headers: Headers
  /** All of the content; empty where it is a stream. */
  readonly text: string
  /** Read it to its end or cancel it: it holds a connection. */
  readonly stream?: S3Stream
}

interface S3Stream extends AsyncIterable<Uint8Array> {
  cancel(): Promise<void>
}

interface Unsigned {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Puts the signature into the query instead of a header. */
  readonly signQuery?: true
}

interface SignerOptions extends Unsigned, S3Credentials {
  readonly region: string
  readonly service: 's3'
  /** Such as `20150830T123600Z`. */
  readonly datetime: string
}

/** The part of aws4fetch that is used; its own declarations need those of a browser. */
type Signer = new (options: SignerOptions) => { sign(): Promise<{ readonly url: URL; readonly headers: Headers }> }

interface S3ClientOptions {
  readonly endpoint: URL
  readonly region: string
  readonly bucket: string
  readonly readCredentials: () => MaybePromise<S3Credentials>
  /** Milliseconds until the credentials and a response, and between two pieces of a stream. */
  readonly timeout: number
}

const MAX_ATTEMPTS = 4
const FIRST_PAUSE = 100
/** Milliseconds. The service allows 15 minutes; a signed address has to end in time, and Date has whole seconds. */
const CLOCK_TOLERANCE = 30_000
const YEAR_10000 = Date.UTC(10_000)
/** Overloads and failures of the service, which end by themselves. */
const TRANSIENT: readonly number[] = [408, 429, 500, 502, 503, 504]
/** The same with statuses of the client: content that got stuck on its way, and two attempts that met. */
const TRANSIENT_CODES: readonly unknown[] = ['RequestTimeout', 'IncompleteBody', 'OperationAborted']

export type S3Client = ReturnType<typeof createS3Client>

/** Sends signed requests to one bucket. */
export function createS3Client({ endpoint, region, bucket, readCredentials, timeout }: S3ClientOptions) {
  const base = `${endpoint.href.replace(/\/$/, '')}/${bucket}`
  /** Milliseconds by which the clock of the service is ahead, where that is more than the tolerance. */
  let clockOffset = 0

  function addressOf({ name, query }: Pick<S3Request, 'name' | 'query'>): URL {
    const url = new URL(name === undefined ? base : `${base}/${name}`)
    for (const [key, value] of Object.entries(query ?? {})) url.searchParams.set(key, value)
    return url
  }

  async function sign(request: Unsigned, signal: AbortSignal) {
    const Signer = await loadSigner()
    // Of whatever class they are: a copy would be without its getters.
    const { accessKeyId, secretAccessKey, sessionToken } = await beforeAbort(readCredentials(), signal)
    const credentials = { accessKeyId, secretAccessKey, sessionToken }
    const datetime = new Date(Date.now() + clockOffset).toISOString().replace(/[:-]|\.\d{3}/g, '')
    return new Signer({ ...credentials, ...request, region, service: 's3', datetime }).sign()
  }

  async function attempt(request: S3Request): Promise<S3Response> {
    const { method, body = new Uint8Array(0), isStream } = request
    // The service refuses a body with another digest.
    const digest = createHash('sha256').update(body).digest('hex')
    const headers = { ...request.headers, 'X-Amz-Content-Sha256': digest }
    const deadline = createDeadline(timeout, request.signal)
    const { signal } = deadline
    deadline.begin()
    try {
      const signed = await sign({ method, url: addressOf(request).href, headers }, signal)
      // Not signed: a proxy may change it. Without it some services code the bytes.
      signed.headers.set('Accept-Encoding', 'identity')
      const content = method === 'PUT' || method === 'POST' ? prepareBody(body, signed.headers) : {}
      const init = { method, headers: signed.headers, redirect: 'manual', signal, ...content } as const
      const response = await fetch(signed.url, init)
      const { status } = response
      compareClocks(response.headers)
      if (!isStream || !response.ok) return { status, headers: response.headers, text: await readText(response) }
      return { status, headers: response.headers, text: '', stream: readStream(response.body!, deadline) }
    } finally {
      deadline.end()
    }
  }

  /** Why another attempt is worth it; `undefined` for a response to go on with. */
  function findTransient(response: S3Response, { root }: S3Request): Error | undefined {
    const { status, headers, text } = response
    if (TRANSIENT.includes(status) || TRANSIENT_CODES.includes(readCode(text))) return createS3Error(response)
    if (status === 200 && root !== undefined && !text.includes(`</${root}`)) return createS3Error(response)
    if (status !== 403 || readCode(text) !== 'RequestTimeTooSkewed') return undefined
    // The clocks differ by more than the service allows: the next attempt is signed by its clock.
    return Number.isNaN(Date.parse(headers.get('Date') ?? '')) ? undefined : createS3Error(response)
  }

  /** From here on requests are signed by the clock of the service, where the two differ. */
  function compareClocks(headers: Headers): void {
    const date = Date.parse(headers.get('Date') ?? '')
    const offset = date - Date.now()
    // No request could be signed with a later year, and no response would set it right.
    if (date < YEAR_10000 && Math.abs(offset - clockOffset) > CLOCK_TOLERANCE) clockOffset = offset
  }

  return {
    /**
     * Signs an address for those who have no credentials.
     * @param lifetime seconds for which a request may begin
     * @throws HttpError 503 while there are no credentials
     * @throws the reason of the signal
     */
    async presign(request: Pick<S3Request, 'method' | 'name' | 'query' | 'signal'>, lifetime: number): Promise<string> {
      const url = addressOf(request)
      url.searchParams.set('X-Amz-Expires', String(lifetime))
      const deadline = createDeadline(timeout, request.signal)
      deadline.begin()
      const signed = await sign({ method: request.method, url: url.href, signQuery: true }, deadline.signal)
        .catch((error: unknown) => {
          request.signal?.throwIfAborted()
          throw error instanceof SetupError ? error.cause : createUnavailableError(error)
        })
        .finally(deadline.end)
      // A space is "+" for some readers of a query, and "%20" for all.
      return signed.url.href.replaceAll('+', '%20')
    },

    /**
     * Sends a request until the service answers it with something else than an overload or a failure of its own.
     * @throws HttpError 503 while the service is away
     * @throws the reason of the signal
     */
    async send(request: S3Request): Promise<S3Response> {
      const { signal } = request
      const begin = performance.now()
      for (let count = 1; ; count++) {
        signal?.throwIfAborted()
        let failure: unknown
        try {
          const response = await attempt(request)
          const transient = findTransient(response, request)
          if (transient === undefined) return response
          failure = transient
        } catch (error) {
          // Credentials may fail with any value, and under Jest `fetch` fails with an Error of another realm.
          signal?.throwIfAborted()
          if (error instanceof SetupError) throw error.cause
          failure = error
        }
        // A service that is silent is not asked again: the client waits all that time.
        if (count === MAX_ATTEMPTS || performance.now() - begin >= timeout) throw createUnavailableError(failure)
        // Without chance in it, those that met would meet again.
        await sleep(FIRST_PAUSE * 2 ** count * Math.random(), undefined, { signal }).catch(() => {})
      }
    },
  }
}

function readStream(body: ReadableStream<Uint8Array>, deadline: Deadline): S3Stream {
  const reader = body.getReader()
  return {
    cancel: () => reader.cancel().catch(() => {}),
    async *[Symbol.asyncIterator]() {
      for (;;) {
        // The time that a reader takes for a piece does not count.
        deadline.begin()
        const next = await reader.read().finally(deadline.end)
        if (next.done) return
        yield next.value
      }
    },
  }
}

function readCode(text: string): string | undefined {
  return /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1]
}

/** The service refused a request: wrong credentials, no such bucket or upload, no room left. */
export function createS3Error({ status, text }: S3Response): Error {
  const code = readCode(text) ?? 'no code'
  const error = new Error(`The S3 service answered ${status} (${code}).`)
  // The sweep has ended it: the process stood still for longer than `grace`, or the clock was put forward.
  if (code === 'NoSuchUpload') return createUnavailableError(error)
  const isFull = status === 507 || code.endsWith('QuotaExceeded')
  return isFull ? new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error }) : error
}

/** A failure that no further attempt would mend. */
class SetupError extends Error {}

async function loadSigner(): Promise<Signer> {
  try {
    // A literal, so that bundlers take the package along, but not for the compiler: its declarations need those of browsers.
    return ((await import('aws4fetch' as string)) as { readonly AwsV4Signer: Signer }).AwsV4Signer
  } catch (error) {
    const cause = new Error('s3Contents needs the package aws4fetch: npm install aws4fetch.', { cause: error })
    throw new SetupError('setup', { cause })
  }
}
