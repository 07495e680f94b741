import type { Route } from '../actions/route.ts'
import type { JsonObject } from '../core/json.ts'
import { listOf, oneOf, shapedAs, writtenAs } from '../core/option-values.ts'
import type { OptionTable } from '../core/options.ts'

/** What the description of a service says beside the definitions. */
export interface OpenApiOptions {
  /** The Info Object: `title` and `version` at least. */
  readonly info: { readonly title: string; readonly version: string } & JsonObject
  /** Server Objects: where the service is mounted. Default: `mountPath`, or the root. */
  readonly servers?: readonly ({ readonly url: string } & JsonObject)[]
  /** The version of OpenAPI: 3.1.1 or 3.2.0. Default `'3.1'`. */
  readonly version?: '3.1' | '3.2'
}

/** `openapi` requires `info`. A service that serves its description has a default for it. */
export const OPENAPI_OPTIONS: OptionTable<OpenApiOptions> = {
  info: writtenAs(shapedAs({ title: 'string', version: 'string' }), 'an Info Object, with title and version'),
  servers: listOf(shapedAs({ url: 'string' })),
  version: oneOf('3.1', '3.2'),
}

/** A compiled service as its description reads it: the very routes that answer the requests. */
export interface ServiceView {
  readonly routes: readonly { readonly pattern: string; readonly route: Route }[]
  /** Names of the authentication schemes, as in the Authorization field; `undefined` without authentication. */
  readonly schemes: readonly string[] | undefined
  /** Whether the host may have found who sends a request. */
  readonly hasHostUsers: boolean
  /** Which requests need credentials where a route does not say; `some`: a function decides. */
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
