import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Sharing } from '../protocol/cache-control.ts'
import type { InFlight } from './connection.ts'
import type { ContentVerifier } from './content-digest.ts'
import { ALL_LENGTHS, joinSplitLists, measureNames, readField } from './fields.ts'
import { type AddressFinder, findPeerAddress } from './peer.ts'
import { findPlace, isHttp2, type Place, streamOf } from './place.ts'
import type { HostAccess, HostRequest, Principal, RequestView } from './request-view.ts'
import { INTERNAL_ERROR, SLOWEST_READER } from './stalled-reader.ts'

/** Fields that every answer carries. */
export const BASE_FIELDS: readonly string[] = Object.freeze(['X-Content-Type-Options', 'nosniff'])
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze(Object.create(null))

/** One request and what has been found out about it so far: the one context object, which travels through all steps. */
export class Exchange implements RequestView {
  // Private, so that no hook can delete them: the answer and `close()` need both.
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  headers: IncomingHttpHeaders
  /** Whether HTTP/2 carries the exchange: no Connection field, no status text. */
  readonly isHttp2: boolean
  method = ''
  /** Where the handler that decides is mounted; another one for every handler on the request. */
  place: Place
  /** The prefix of the paths that clients see. */
  mount: string
  path = ''
  /** What programs may take the path for, itself first, where they differ; otherwise `undefined`. */
  readings: readonly string[] | undefined = undefined
  /** What follows `?` in the target, as received. */
  queryText = ''
  get params(): Readonly<Record<string, string>> {
    // Read anew each time: a router changes it from one layer to the next.
    const found = this.host?.params?.(this.adapterContext as never)
    if (found !== undefined) return found
    const { params } = this.req as HostRequest
    return params !== undefined && Object.hasOwn(this.req, 'params') ? params : NO_PARAMS
  }

  /** The adapter that the request came through, and what its host handed over. */
  host: HostAccess | undefined = undefined
  adapterContext: unknown = undefined

  principal: Principal | undefined = undefined
  /** Whether browsers attach the credentials of the principal by themselves. */
  isAmbient = false
  /** What caches may do with the response, by where the principal came from. */
  sharing: Sharing = 'public'
  /** Cache-Control that a middleware has put on the host's response as a default, for a route that says nothing. */
  usualCacheControl: string | undefined = undefined
  hostContext: unknown
  /** Finds the address of the client; behind trusted proxies it is not that of the peer. */
  findAddress: AddressFinder = findPeerAddress
  /** Fields for every later reply, names and values in turn: CORS, security. */
  pending: readonly string[] = BASE_FIELDS
  /** The value of Vary so far. */
  vary = ''
  /** Whether the host takes unmatched requests. */
  canPass = false
  /** Whether the host had sent the head of a response when it passed the request on. */
  isBegun = false
  /** Whether the request may have content: over HTTP/1 a field announces it (RFC 9112 §6.3). */
  mayHaveContent = false
  /** How far its content has been dealt with. */
  bodyState: 'unread' | 'reading' | 'read' = 'unread'
  /** What Content-Length says; `null` before it was read. */
  contentLength: number | undefined | null = null
  /** Compares the content with the digests that the request states, while it is read. */
  verifier: ContentVerifier | undefined = undefined
  /** Whether a middleware adds the digests that the request wants to its response. */
  answersDigests = false
  /** Milliseconds without progress after which a client that neither sends nor reads is given up. */
  idleTimeout = 30_000
  /** Bytes a second at which a client has to read at least. */
  slowestReader: number = SLOWEST_READER
  /** Set while a 100 Continue is owed: the client waits for it before it sends content (RFC 9110 §10.1.1). */
  sendContinue: (() => void) | undefined = undefined
  /** Its entry among the requests of its connection, while it is not decided how it is answered; others wait for it. */
  inFlight: InFlight | undefined = undefined
  /** Its index in the list of requests under way; -1 outside of it. */
  activityIndex = -1
  /** Names of the steps taken and reasons found; only while somebody listens. */
  trace: string[] | undefined = undefined

  #lengths: number = ALL_LENGTHS
  #query: URLSearchParams | undefined
  /** What `#query` was made of: a host may rewrite the target between two middlewares. */
  #queried = ''
  #controller: AbortController | undefined
  #addressFinder: AddressFinder | undefined
  #clientAddress: string | undefined

  constructor(req: IncomingMessage, res: ServerResponse, place: Place = findPlace(req)) {
    this.#req = req
    this.#res = res
    this.hostContext = req
    this.place = place
    this.mount = place.mount
    this.headers = req.headers
    this.isHttp2 = isHttp2(req)
    if (this.isHttp2) joinSplitLists(req)
    this.takeRequest()
  }

  get req(): IncomingMessage {
    return this.#req
  }

  get res(): ServerResponse {
    return this.#res
  }

  /** Takes method and fields as they are now. Called for each middleware: a host may change them between two of them. */
  takeRequest(): void {
    this.method = this.req.method ?? ''
    this.isBegun = this.res.headersSent
    this.headers = this.req.headers
    this.contentLength = null
    // HTTP/2 has its fields in an object that is slow to enumerate.
    if (!this.isHttp2) this.#lengths = measureNames(this.headers)
    const isAnnounced = this.field('content-length') !== undefined || this.field('transfer-encoding') !== undefined
    this.mayHaveContent = isAnnounced || this.isHttp2
  }

  /**
   * The value of a request field; the one way to read one. Own properties only: a polluted prototype would otherwise
   * send fields in the client's name.
   * @param name in lower case
   */
  field(name: string): string | undefined {
    // A PUT looks for thirty fields and finds five. A search in vain takes 150 instructions, this 5.
    if ((this.#lengths & (1 << name.length)) === 0) return undefined
    return readField(this.headers, name)
  }

  /** The value of a response field that the host has set so far. @param name in lower case */
  hostField(name: string): string | undefined {
    const value = this.host?.field?.(this.adapterContext as never, name) ?? this.res.getHeader(name)
    return value === undefined ? undefined : String(value)
  }

  get query(): URLSearchParams {
    if (this.#queried !== this.queryText) {
      this.#queried = this.queryText
      this.#query = undefined
    }
    return (this.#query ??= new URLSearchParams('&' + this.queryText))
  }

  /** The pattern of the resource that the request is for, as in its definition; `undefined` where there is none. */
  get pattern(): string | undefined {
    return undefined
  }

  /**
   * Whether the response to a write shows the current state, as that to a GET would: a client that may not read must not
   * get it.
   */
  get revealsState(): boolean {
    return false
  }

  /** Kept from the first time that it is read on: a connection that has closed, and a stream of HTTP/2, tell none. */
  get clientAddress(): string | undefined {
    // A middleware may name another finder than those before it.
    if (this.#addressFinder !== this.findAddress) {
      this.#addressFinder = this.findAddress
      this.#clientAddress = this.findAddress(this)
    }
    return this.#clientAddress
  }

  // An AbortController costs more than a whole small request, so it is made only when it is read.
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      if (this.hasLeft) controller.abort()
      // After the response nothing would take the listener off the connection, which may carry further requests.
      else if (!this.isClosed)
        this.onClose(() => {
          if (!this.isSent) controller.abort()
        })
    }
    return this.#controller.signal
  }

  /** Whether an error is the end of work that was stopped because the client has left. It gets no response. */
  isAbort(error: unknown): boolean {
    const signal = this.#controller?.signal
    return signal?.aborted === true && (error === signal.reason || (error as Error | null)?.name === 'AbortError')
  }

  /** Whether nothing can be sent any more: all has been, the client has gone away, or the exchange was broken off. */
  get isClosed(): boolean {
    // The response before a stream does not tell that it was reset, and cannot reset it. Node 20 and 22 do not tell an answer
    // that waits behind another when their connection closes.
    return this.isHttp2 ? streamOf(this).destroyed : this.res.destroyed || this.req.socket.destroyed
  }

  /** Whether the whole response has been sent. */
  get isSent(): boolean {
    return this.isHttp2 ? this.res.writableEnded : this.res.writableFinished
  }

  /** Whether the client has left before the whole response was sent. */
  get hasLeft(): boolean {
    return this.isClosed && !this.isSent
  }

  /** Calls `listener` once nothing can be sent any more, if that is not so yet. @returns what takes it off again */
  onClose(listener: () => void): () => void {
    const { req, res } = this
    // As in `isClosed`: an answer that waits behind another has the connection of its request only.
    const isBehind = !this.isHttp2 && res.socket === null
    const emitters: readonly NodeJS.EventEmitter[] = isBehind ? [res, req.socket.setMaxListeners(0)] : [res]
    const stop = (): void => emitters.forEach((emitter) => void emitter.off('close', close))
    const close = (): void => {
      stop()
      listener()
    }
    for (const emitter of emitters) emitter.on('close', close)
    return stop
  }

  /** Ends the exchange so that the client sees that the response is not whole (RFC 9112 §8, RFC 9113 §8.1.1). */
  breakOff(): void {
    if (this.isHttp2) streamOf(this).close(INTERNAL_ERROR)
    else this.res.destroy()
  }
}
