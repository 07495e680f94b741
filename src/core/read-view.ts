import type { RequestView } from './exchange.ts'

/**
 * A request as if it were a GET of the same target: rules that decide by the method are asked with it where the answer to
 * a write tells what a GET would.
 */
export function asRead(request: RequestView): RequestView {
  return new ReadView(request, request.path, () => request.params)
}

/**
 * A request as if it were a GET of another target with the same query: an entry of a listing is judged by it.
 * @param path the decoded path of the target
 * @param readParams gives the values of the names in its pattern
 */
export function asReadOf(request: RequestView, path: string, readParams: () => RequestView['params']): RequestView {
  return new ReadView(request, path, readParams)
}

/** A class: an object literal with getters costs a hidden class for every entry of a listing. */
class ReadView implements RequestView {
  readonly #request: RequestView
  readonly #readParams: () => RequestView['params']
  readonly method = 'GET'
  readonly path: string
  readonly mount: string
  readonly headers: RequestView['headers']
  readonly principal: RequestView['principal']
  readonly req: RequestView['req']
  readonly hostContext: unknown

  constructor(request: RequestView, path: string, readParams: () => RequestView['params']) {
    this.#request = request
    this.#readParams = readParams
    this.path = path
    this.mount = request.mount
    this.headers = request.headers
    this.principal = request.principal
    this.req = request.req
    this.hostContext = request.hostContext
  }

  get query(): URLSearchParams {
    return this.#request.query
  }

  get params(): RequestView['params'] {
    return this.#readParams()
  }

  get signal(): AbortSignal {
    return this.#request.signal
  }

  get clientAddress(): string | undefined {
    return this.#request.clientAddress
  }
}
