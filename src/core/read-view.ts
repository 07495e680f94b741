import type { RequestView } from './exchange.ts'

/**
 * A request as if it were a GET of the same target: rules that decide by the method are asked with it where the answer to
 * a write tells what a GET would.
 */
export function asRead(request: RequestView): RequestView {
  return asReadOf(request, request)
}

/**
 * A request as if it were a GET of another target with the same query: an entry of a listing is judged by it.
 * @param target its decoded path, and the values of the names in its pattern
 */
export function asReadOf(request: RequestView, target: Pick<RequestView, 'path' | 'params'>): RequestView {
  const { mount, headers, principal, req, hostContext } = request
  return {
    method: 'GET',
    ...{ path: target.path, mount, headers, principal, req, hostContext },
    get query() {
      return request.query
    },
    get params() {
      return target.params
    },
    get signal() {
      return request.signal
    },
    get clientAddress() {
      return request.clientAddress
    },
  }
}
