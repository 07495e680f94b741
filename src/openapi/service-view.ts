import type { Route } from '../actions/route.ts'

/** A compiled service as its description reads it: the very routes that answer the requests. */
export interface ServiceView {
  readonly routes: readonly { readonly pattern: string; readonly route: Route }[]
  /** Names of the authentication schemes, as in the Authorization field; `undefined` without authentication. */
  readonly schemes: readonly string[] | undefined
  /** Which requests need credentials where a route does not say; `some` are picked by a function. */
  readonly credentials: 'all' | 'writes' | 'none' | 'some'
  /** Whether cleartext requests are refused. */
  readonly refusesCleartext: boolean
  /** Whether requests of other origins are refused. */
  readonly refusesOrigins: boolean
  /** Whether a hook of the service writes the answers for errors. */
  readonly formatsErrors: boolean
  /** The path prefix that the service says it is mounted at. */
  readonly mountPath: string
}

const views = new WeakMap<object, ServiceView>()

/** Keeps the compiled service behind the function that serves it, so that a description need not repeat it. */
export function rememberView(service: object, view: ServiceView): void {
  views.set(service, view)
}

/** The compiled service behind a function; `undefined` for any other function. */
export function findView(service: object): ServiceView | undefined {
  return views.get(service)
}
