import { createHash } from 'node:crypto'
import { type ProtectedResourceMetadataOptions, readResourceMetadata } from '../auth-schemes/resource-metadata.ts'
import type { AuthScheme } from '../auth-schemes/scheme.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { judgeConditions, readConditions } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import { createHandler } from '../core/node-handler.ts'
import { readProperty } from '../core/options.ts'
import { contentReply, emptyReply, type Reply } from '../core/reply.ts'
import { addPending } from '../core/write-head.ts'
import { pathOfTarget } from '../protocol/request-line.ts'

/** Serves the metadata of a protected resource at its well-known URI. */
export interface MetadataEndpoint {
  /** See `Handler.isWellKnown`. */
  readonly isWellKnown: (target: string) => boolean
  covers(exchange: Exchange): boolean
  /** The answer to a request for the document. @throws HttpError 405 for another method than GET, HEAD and OPTIONS */
  answer(exchange: Exchange): Reply
}

const METHODS = 'GET, HEAD, OPTIONS'
/** Applications in browsers look for the document before they have a token (RFC 9728 §3.1). */
const ANY_ORIGIN = ['Access-Control-Allow-Origin', '*']
const PREFLIGHT_FIELDS = {
  Allow: METHODS,
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, HEAD',
  'Access-Control-Allow-Headers': '*',
  'Access-Control-Max-Age': '86400',
  'Cache-Control': 'no-store',
}
const PREFLIGHT = emptyReply(204, Object.entries(PREFLIGHT_FIELDS).flat())

function createMetadataEndpoint(options: ProtectedResourceMetadataOptions): MetadataEndpoint {
  const { document, isTarget } = readResourceMetadata(options)
  const tag = `"${createHash('sha256').update(document).digest('base64url')}"`
  const shared = ['ETag', tag, 'Cache-Control', 'public, max-age=3600']
  const found = contentReply(200, document, ['Content-Type', 'application/json', ...shared])
  const unchanged = emptyReply(304, shared)
  const validators = { entityTags: [tag] }

  return {
    isWellKnown: isTarget,
    covers({ place: { mount, target, isClear } }) {
      if (!isClear) return false
      if (isTarget(mount + target)) return true
      // A host that has mounted the handler at the very path hands over "/".
      return pathOfTarget(target) === '/' && isTarget(mount + target.slice(1))
    },
    answer(exchange) {
      exchange.path = pathOfTarget(exchange.place.target)
      if (exchange.method === 'OPTIONS') return PREFLIGHT
      // On errors as well: a script could not read why.
      addPending(exchange, ANY_ORIGIN)
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
        throw new HttpError(405, 'ERR_METHOD_NOT_ALLOWED', { headers: { Allow: METHODS } })
      }
      const outcome = judgeConditions(exchange, readConditions(exchange), validators, Date.now())
      return outcome === 'not-modified' ? unchanged : found
    },
  }
}

/**
 * The endpoint of the scheme that has metadata; `undefined` where none has.
 * @throws TypeError for two schemes with metadata: one resource has one document (RFC 9728 §3)
 */
export function findMetadataEndpoint(schemes: readonly AuthScheme[]): MetadataEndpoint | undefined {
  const [metadata, ...others] = schemes.flatMap((scheme) => readProperty(scheme, 'metadata') ?? [])
  if (others.length > 0) throw new TypeError('auth has two schemes with "metadata": one of them names the resource.')
  return metadata === undefined ? undefined : createMetadataEndpoint(metadata)
}

/**
 * A handler that serves the metadata of a protected resource (RFC 9728), for a mount at its well-known URI: the path
 * `/.well-known/oauth-protected-resource`, followed by the path of the resource. It needs no credentials, and answers every
 * origin.
 *
 * A service and `auth` with `bearer(..., { metadata })` serve the document themselves where they see requests for it: at the
 * root, below `mount`, and with `attach`. This handler is for hosts that have mounted them at a prefix.
 * @returns a handler for Express and Connect; requests for anything else go on to `next`
 * @throws TypeError for a resource, an issuer or a scope that is malformed, and for options that do not exist
 * @example
 * app.use(protectedResourceMetadata({ resource: 'https://api.example/notes', authorizationServers: ['https://login.example'] }))
 */
export function protectedResourceMetadata(options: ProtectedResourceMetadataOptions): Handler {
  const { isWellKnown, covers, answer } = createMetadataEndpoint(options)
  return createHandler({
    run: (exchange) => (covers(exchange) ? answer(exchange) : undefined),
    isWellKnown,
    forwardErrors: true,
  })
}
