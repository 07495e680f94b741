import type { MaybePromise } from '../core/maybe-promise.ts'
import {
  BOOLEAN,
  either,
  FUNCTION,
  MILLISECONDS,
  RECORD,
  required,
  TEXT,
  textLike,
  type ValueRule,
  withDefault,
} from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createUnavailableError } from '../core/unavailable.ts'
import { createS3Client, createS3Error, type S3Credentials } from './s3/client.ts'
import { type ListedObject, listObjects, listUploads } from './s3/lists.ts'
import { locateObject, removeObject, uploadObject } from './s3/objects.ts'
import { type ContentStore, checkKey, createGoneError, type ListedContent } from './types.ts'

export type { S3Credentials } from './s3/client.ts'
export type { ContentStore, ListedContent, LocateRequest, PutContent } from './types.ts'

/** Options of `s3Contents`. It needs `endpoint`, `region`, `bucket` and `credentials`. */
export interface S3ContentsOptions {
  /** The address of the service, such as `https://s3.eu-central-1.amazonaws.com`. Buckets are addressed by path. Required. */
  readonly endpoint: string
  /** The region that requests are signed for. Required. */
  readonly region: string
  /** The bucket. It must exist. Required. */
  readonly bucket: string
  /**
   * What requests are signed with: `{ accessKeyId, secretAccessKey }`, and `sessionToken` where they are temporary. A function
   * is called for every request. Required.
   */
  readonly credentials: S3Credentials | (() => MaybePromise<S3Credentials>)
  /** What the names of objects begin with: letters, digits, `/`, `_`, `.` and `-`, such as `media/`. Default: nothing. */
  readonly prefix?: string
  /** Milliseconds for one request, from its credentials to the header of its response; 503 after that. Default 60 000. */
  readonly timeout?: number
  /**
   * Whether GET and HEAD of content in the bucket are answered 307 with a signed address of the bucket, which is valid for
   * five minutes, instead of with the content. Default false.
   */
  readonly redirect?: boolean
}

/** An address has no part "." or "..": an object of that prefix would lie elsewhere, where no list finds it. */
const PREFIX = textLike(
  /^(?!(?:.*\/)?\.\.?\/)[\w./-]*$/,
  'text of letters, digits, "/", "_", "." and "-", without a part "." or ".."',
)
const ADDRESS: ValueRule = {
  // `fetch` refuses user information.
  accepts: (value) =>
    typeof value === 'string' && /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/.test(value) && URL.canParse(value),
  text: 'the address of the service, such as https://s3.eu-central-1.amazonaws.com',
}
const BUCKET = textLike(/^[\w.-]{1,255}$/, 'the name of a bucket')
const CREDENTIALS = either(
  {
    accepts(value) {
      if (!RECORD.accepts(value)) return false
      const { accessKeyId, secretAccessKey, sessionToken } = value as Partial<S3Credentials>
      return [accessKeyId, secretAccessKey, sessionToken ?? ''].every((text) => typeof text === 'string')
    },
    text: '{ accessKeyId, secretAccessKey, sessionToken }',
  },
  FUNCTION,
)

const OPTIONS = {
  endpoint: required(ADDRESS),
  region: required(TEXT),
  bucket: required(BUCKET),
  credentials: required(CREDENTIALS),
  prefix: withDefault(PREFIX, ''),
  timeout: withDefault(MILLISECONDS, 60_000),
  redirect: withDefault(BOOLEAN, false),
} satisfies OptionTable<S3ContentsOptions>

/**
 * Keeps large content as objects in a bucket of Amazon S3 or of a service with its interface. It needs no conditional
 * writes. Needs the package `aws4fetch`.
 * @throws TypeError for an unknown or missing option
 * @example
 * const contents = s3Contents({ endpoint, region: 'eu-central-1', bucket: 'media', credentials, prefix: 'notes/' })
 * const store = postgresStore({ pool, contents })
 */
export function s3Contents(options: S3ContentsOptions): ContentStore {
  const read = resolveOptions('s3Contents', options, OPTIONS)
  const { region, bucket, credentials, prefix, timeout, redirect } = read
  const endpoint = new URL(read.endpoint)
  const readCredentials = typeof credentials === 'function' ? credentials : () => credentials
  const client = createS3Client({ endpoint, region, bucket, readCredentials, timeout })
  const nameOf = (key: string): string => prefix + checkKey(key)

  async function* listKeys(objects: AsyncIterable<ListedObject>): AsyncGenerator<ListedContent> {
    for await (const { name, age, uploadId } of objects) {
      const key = name.slice(prefix.length)
      if (!/^[0-9a-f]{16,100}$/.test(key)) continue
      yield { key, age, remove: () => removeObject(client, name, uploadId) }
    }
  }

  return {
    put: async (key, body, { signal } = {}) => uploadObject(client, nameOf(key), body, signal),

    async *open(key, first, last, { signal } = {}) {
      const headers = { Range: `bytes=${first}-${last}` }
      const response = await client.send({ method: 'GET', name: nameOf(key), headers, signal, isStream: true })
      if (response.status === 404) throw createGoneError(createS3Error(response))
      const range = response.status === 206 ? response.headers.get('Content-Range') : null
      const isAsked = range?.startsWith(`bytes ${first}-${last}/`) === true
      try {
        if (!isAsked) throw createS3Error(response)
        for await (const chunk of response.stream!) yield chunk
      } catch (error) {
        signal?.throwIfAborted()
        throw isAsked ? createUnavailableError(error) : error
      } finally {
        await response.stream?.cancel()
      }
    },

    ...(redirect ? { locate: (key, request) => locateObject(client, nameOf(key), request) } : {}),

    async remove(key) {
      await removeObject(client, nameOf(key))
    },

    async *list() {
      yield* listKeys(listObjects(client, prefix))
      yield* listKeys(listUploads(client, prefix))
    },
  }
}
