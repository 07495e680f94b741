import { ByteBlocks } from '../core/byte-blocks.ts'
import { publishFailure } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { createAvailability, type Log } from '../core/operator-log.ts'
import { isWithin } from '../core/time.ts'
import type { JwtOptions } from './jwt-options.ts'
import { formatKeyIdentity, isImportable, isKeyFor, parsePublicJwk, type VerificationKey } from './verification-key.ts'

/** Where verification keys come from. */
export interface KeySource {
  /** Grows when a key is removed: what was verified before must be verified again. */
  readonly generation: number
  /** Sees to it that the keys may be used; at once where they may. @throws HttpError 503 when they cannot be had */
  refresh(): MaybePromise<void>
  /** The keys that may have made a signature. @throws HttpError 503 when that cannot be known */
  find(alg: string, kid: unknown): MaybePromise<readonly VerificationKey[]>
  /** Reports when the keys cannot be had, and when they can be had again. @returns what ends the reports */
  watch(log: Log): () => void
}

export function createStaticKeySource(keys: readonly VerificationKey[]): KeySource {
  return {
    generation: 0,
    refresh: () => undefined,
    find: (alg, kid) => keys.filter((key) => isKeyFor(key, alg, kid)),
    watch: () => () => {},
  }
}

/**
 * Keys that are fetched from their issuer: by one fetch for all who wait, rarely, and used for a while longer when the
 * issuer is away. Nothing a client sends makes more fetches than one per cooldown.
 * @param load fetches a JWK Set; anything that it throws means that the keys cannot be had
 * @param times when keys are fetched again, for how much longer they are used where that fails, the least time between
 *   fetches that an unknown key causes, how long a failure stands, and the longest that a fetch may take
 * @param algorithms those that keys are wanted for
 */
export function createRemoteKeySource(
  load: (signal: AbortSignal) => MaybePromise<unknown>,
  times: Required<NonNullable<JwtOptions['jwksTimes']>>,
  algorithms: readonly string[],
): KeySource {
  const { freshFor, staleFor, cooldown, retryAfter, timeout } = times
  let keys: readonly VerificationKey[] = []
  let fetchedAt = Number.NEGATIVE_INFINITY
  let failedAt = Number.NEGATIVE_INFINITY
  let pending: Promise<void> | undefined
  const availability = createAvailability('keys', 'jwt has fetched the keys for tokens again.')

  const source = {
    generation: 0,
    refresh,
    watch: availability.watch,
    find(alg: string, kid: unknown): MaybePromise<readonly VerificationKey[]> {
      const select = () => keys.filter((key) => isKeyFor(key, alg, kid))
      return andThen(refresh(), () => {
        const found = select()
        if (found.length > 0 || isWithin(fetchedAt, cooldown)) return found
        return andThen(fetchKeys(), select)
      })
    },
  }

  function refresh(): MaybePromise<void> {
    if (isWithin(fetchedAt, freshFor)) return undefined
    if (!isWithin(fetchedAt, freshFor + staleFor)) return fetchKeys()
    if (pending === undefined && !isWithin(failedAt, retryAfter)) {
      fetchKeys().catch(() => {}) // has been published
    }
    return undefined
  }

  function fetchKeys(): Promise<void> {
    if (pending !== undefined) return pending
    // The endpoint is left alone for a moment after a failure: with nothing to use, every request would ask it.
    if (isWithin(failedAt, retryAfter)) return Promise.reject(createUnavailable(retryAfter))
    pending = loadKeys().finally(() => {
      pending = undefined
    })
    return pending
  }

  async function loadKeys(): Promise<void> {
    try {
      replaceKeys(readKeySet(await loadInTime()))
    } catch (cause) {
      failedAt = Date.now()
      publishFailure({ error: cause, stage: 'background' })
      availability.fail(describeFailure, cause)
      throw createUnavailable(retryAfter, cause)
    }
    fetchedAt = Date.now()
    // Answered 401 like a token of another issuer: without a report the clients would seem to be at fault.
    const isUsable = keys.some((key) => algorithms.some((alg) => isKeyFor(key, alg)) && isImportable(key))
    if (isUsable) availability.succeed()
    else
      availability.fail(() => `jwt found no key for ${algorithms.join(', ')} at "jwks": every token is answered 401.`)
  }

  function describeFailure(reason: string): string {
    const effect = isWithin(fetchedAt, freshFor + staleFor)
      ? 'the keys fetched before are used for now'
      : 'requests with a token are answered 503'
    return `jwt cannot fetch the keys of "jwks": ${reason}; ${effect}.`
  }

  /** A fetch that never ends would be waited for by every request. */
  async function loadInTime(): Promise<unknown> {
    const controller = new AbortController()
    const { signal } = controller
    const timer = setTimeout(() => controller.abort(new Error('The keys took too long.')), timeout)
    try {
      return await new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        Promise.resolve(load(signal)).then(resolve, reject)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  function replaceKeys(next: readonly VerificationKey[]): void {
    const known = new Map(keys.map((key) => [formatKeyIdentity(key), key]))
    // A key that stays is the same object, with what was imported of it.
    keys = next.map((key) => known.get(formatKeyIdentity(key)) ?? key)
    if ([...known.values()].some((key) => !keys.includes(key))) source.generation++
  }

  return source
}

/** The public keys of a JWK Set (RFC 7517 §5); those that are not for signatures, or not understood, are left out. */
function readKeySet(set: unknown): readonly VerificationKey[] {
  const list = typeof set === 'object' && set !== null && Object.hasOwn(set, 'keys') && (set as { keys: unknown }).keys
  if (!Array.isArray(list)) throw new TypeError('The issuer sent something that is not a JWK Set.')
  // Every unknown token is compared with all of them.
  if (list.length > MAX_KEYS) throw new RangeError(`The issuer sent more than ${MAX_KEYS} keys.`)
  return list.map(parsePublicJwk).filter((key) => key !== undefined)
}

/** The client is not at fault when keys cannot be had: 401 would send its user to log in again, in vain. */
function createUnavailable(retryAfter: number, cause?: unknown): HttpError {
  const headers = { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter / 1000))) }
  return new HttpError(503, 'ERR_UNAVAILABLE', { headers, cause })
}

/** Bytes of a key set, decoded. */
const MAX_SIZE = 1024 * 1024
/** Keys of a key set, those that are not understood included. */
const MAX_KEYS = 1000

/**
 * Fetches a JSON document: no redirects, no more than a megabyte, and one content coding at most.
 * @throws Error when anything is not as it should be
 */
export async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  // Without a prototype: what pollutes Object.prototype must not become an option of the request.
  const options = Object.assign(Object.create(null), {
    redirect: 'error',
    signal,
    headers: [['Accept', 'application/jwk-set+json, application/json']],
  }) as RequestInit
  const response = await fetch(url, options)
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel()
    throw new Error(`The key endpoint answered ${response.status}.`)
  }
  // What is counted is what the last coding gives: those before it may expand to any size unseen.
  if (response.headers.get('content-encoding')?.includes(',')) {
    await response.body.cancel()
    throw new Error('The key endpoint used several content codings.')
  }
  const blocks = new ByteBlocks()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    blocks.push(chunk)
    if (blocks.size > MAX_SIZE) throw new Error('The key endpoint sent too much.')
  }
  return JSON.parse(new TextDecoder().decode(blocks.drain())) as unknown
}
