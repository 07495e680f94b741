import type { RequestView } from './exchange.ts'

/**
 * A request as if it were a GET of the same target: rules that decide by the method are asked with it where the answer to
 * a write tells what a GET would.
 */
export function asRead(request: RequestView): RequestView {
  const { path, mount, headers, principal, req, hostContext } = request
  return {
    method: 'GET',
    ...{ path, mount, headers, principal, req, hostContext },
    get query() {
      return request.query
    },
    get params() {
      return request.params
    },
    get signal() {
      return request.signal
    },
    get clientAddress() {
      return request.clientAddress
    },
  }
}
