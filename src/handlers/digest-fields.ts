import { expectDigests } from '../core/content-digest.ts'
import type { ErrorHook } from '../core/failures.ts'
import type { Handler } from '../core/handler.ts'
import { createHandler } from '../core/node-handler.ts'
import { BOOLEAN, FUNCTION, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { hasBody } from '../core/request-content.ts'
import { CONTENT_METHODS, isSafeMethod } from '../protocol/request-line.ts'

/** Options of `digestFields`. */
export interface DigestFieldOptions {
  /**
   * Whether content needs a Content-Digest or Repr-Digest by sha-256 or sha-512; 400 with Want-Content-Digest otherwise.
   * Default false: a digest that is sent is verified.
   */
  readonly required?: boolean
  /** Called with unexpected errors where there is no `next`. Default: `console.error`. */
  readonly onError?: ErrorHook
}

const OPTIONS = {
  required: withDefault(BOOLEAN, false),
  onError: FUNCTION,
} satisfies OptionTable<DigestFieldOptions>

/**
 * Standalone middleware for digest fields (RFC 9530). It verifies the content that `bodyParse` and `patch` behind it read, and has
 * `range` answer Want-Repr-Digest and Want-Content-Digest. Malformed fields are 400 at once, another digest where the
 * content ends: before `patch` writes and `bodyParse` goes on, and as an error of streams and multipart while they are read.
 *
 * Content that a parser before has consumed is verified where `req.body` has its bytes. Content that the host reads by
 * itself behind this middleware is not verified.
 * @returns a handler for Express and Connect, and for `node:http` with a `next` of your own
 * @throws TypeError for an option that does not exist or makes no sense
 * @example
 * app.post('/notes', digestFields(), bodyParse(), (req, res) => res.status(201).json(save(req.body)))
 * app.get('/film', digestFields(), range(() => openFile('film.mp4', { contentType: 'video/mp4', sha256 })))
 */
export function digestFields(options?: DigestFieldOptions): Handler {
  const { required, onError } = resolveOptions('digestFields', options, OPTIONS)
  return createHandler({
    role: 'guard',
    run(exchange) {
      const { method } = exchange
      exchange.answersDigests = true
      const isQuery = method === 'QUERY'
      if (isSafeMethod(method) && !isQuery) return undefined
      // A query is not stored.
      expectDigests(exchange, required && !isQuery && (CONTENT_METHODS.includes(method) || hasBody(exchange)))
      return undefined
    },
    onError,
    forwardErrors: true,
  })
}
