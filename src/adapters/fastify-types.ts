/** As much of a Fastify request as is used. */
export interface FastifyRequestLike {
  readonly raw: object
  readonly params: unknown
  readonly is404: boolean
  readonly server: { hasContentTypeParser(contentType: string): boolean }
  headers: object
}

/** As much of a Fastify reply as is used. */
export interface FastifyReplyLike {
  readonly raw: object
  readonly request: FastifyRequestLike
  hijack(): unknown
  callNotFound(): unknown
  getHeader(name: string): unknown
  getHeaders(): Record<string, unknown>
  header(name: string, value: unknown): unknown
  removeHeader(name: string): unknown
  code(status: number): unknown
  send(payload?: unknown): unknown
}

type Hook = (request: FastifyRequestLike, reply: FastifyReplyLike, done: (error?: Error) => void) => void
export type ContentHook = (
  request: FastifyRequestLike,
  reply: FastifyReplyLike,
  payload: unknown,
  done: (error?: Error | null, payload?: unknown) => void,
) => void

/** As much of a Fastify instance as is used; Fastify 5 has it. */
export interface FastifyInstanceLike {
  readonly prefix: string
  readonly supportedMethods: string[]
  addHttpMethod(method: string, options?: { hasBody: boolean }): unknown
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    contentType: string,
    parser: (request: FastifyRequestLike, payload: unknown, done: (error: null, body?: unknown) => void) => void,
  ): unknown
  addHook(name: 'onRequest', hook: Hook): unknown
  addHook(name: 'preParsing' | 'onSend', hook: ContentHook): unknown
  route(options: {
    method: string[]
    url: string
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => unknown
  }): unknown
}
