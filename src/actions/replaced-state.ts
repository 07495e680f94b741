import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { isJsonType, parseMediaType } from '../protocol/media-type.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { loadIfPresent, readMetadata } from './state.ts'

/** Whether a media type is that of a patch format of the service. */
export function isPatchType({ context }: Route, essence: string): boolean {
  return context.patchFormats.some((format) => format.mediaType === essence)
}

/**
 * Reads the state of a target that PUT replaces and that need not exist, where a condition is about to ask for it, or
 * where the content is a patch document.
 * @throws HttpError 415 for a patch document over a JSON resource: it would become the resource (RFC 5789 §2)
 */
export function loadReplaced(exchange: ResourceExchange): MaybePromise<void> {
  const { route, contentType } = exchange
  if (route.isJson || !isPatchType(route, contentType)) return loadIfPresent(exchange)
  return andThen(readMetadata(exchange), () => {
    const { current } = exchange
    const stored = current === undefined ? undefined : parseMediaType(current.contentType)?.essence
    if (stored === undefined || stored === contentType || !isJsonType(stored)) return
    throw new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', {
      detail: `${contentType} describes changes: send it with PATCH.`,
      headers: { Accept: exchange.action.content!.types.join(', ') },
    })
  })
}
