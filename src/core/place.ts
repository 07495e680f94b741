import type { IncomingMessage } from 'node:http'
import { leadsOut, listReadings, measurePrefix, placeTarget } from '../protocol/path-prefix.ts'
import { parseRequestTarget, pathOfTarget, toOriginForm } from '../protocol/request-target.ts'
import type { HostRequest } from './exchange.ts'

/** Where a host has mounted a handler, as seen from one request. */
export interface Place {
  /** The path prefix of the mount as the client spelled it; empty at the root. */
  readonly mount: string
  /** The request target below the mount, as received, in origin-form: `/users?limit=1`. `*` stays what it is. */
  readonly target: string
  /**
   * Whether the request is below the mount in every reading of its target that counts. Otherwise it is for some programs and
   * not for others; `mount` and `target` are then those around the mount. A guard must not let such a request go on.
   */
  readonly isClear: boolean
}

/** Where the host has mounted the handler that it calls: the end of `originalUrl` that is left in `url`. */
export function findPlace(req: IncomingMessage & HostRequest): Place {
  const { url = '', originalUrl, baseUrl } = req
  const target = toOriginForm(url)
  if (originalUrl === undefined || originalUrl === url) return { mount: '', target, isClear: true }
  const whole = pathOfTarget(originalUrl)
  const path = pathOfTarget(target)
  // "/api" and "/api?x" arrive as "/" and "/?x". Any other URL that is not an end of the original was rewritten.
  const isMountItself = path === '/' && (baseUrl === undefined || (baseUrl !== '' && whole.endsWith(baseUrl)))
  let mount = baseUrl ?? ''
  if (whole.endsWith(path)) mount = whole.slice(0, whole.length - path.length)
  else if (isMountItself) mount = whole
  // Links begin with the mount: "//host" would be the authority of one.
  if (parseRequestTarget(mount || '/') === undefined) mount = baseUrl ?? ''
  // Express 4 takes both slashes of "/api//users" for one when it strips the mount: the second must not get lost, or
  // one resource has two names.
  return mount.endsWith('/')
    ? { mount: mount.slice(0, -1), target: `/${target}`, isClear: true }
    : { mount, target, isClear: true }
}

/**
 * The place of a handler that is mounted at a prefix below another place.
 * @param prefix see `placeTarget`
 * @returns `undefined` when the request is outside the prefix in every reading of its target
 */
export function placeBelow(place: Place, prefix: string): Place | undefined {
  if (prefix === '' || !place.isClear) return place
  const { mount, target } = place
  const placement = placeTarget(target, prefix)
  // Dots may lead out of the mount around, and back to the prefix.
  const mayReturn = placement === 'outside' && mount !== '' && leadsOut(listReadings(pathOfTarget(target)))
  if (placement === 'outside' && !mayReturn) return undefined
  if (placement !== 'inside') return { mount, target, isClear: false }
  const length = measurePrefix(pathOfTarget(target), prefix)!
  const rest = target.slice(length)
  return { mount: mount + target.slice(0, length), target: rest.startsWith('/') ? rest : `/${rest}`, isClear: true }
}
