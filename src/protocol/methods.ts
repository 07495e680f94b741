/** The methods this library knows (RFC 9110 §9, RFC 5789, RFC 10008). */

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'QUERY'

/** The methods of resources of every kind, in the order in which Allow and Access-Control-Allow-Methods list them. */
export const METHODS: readonly Method[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** With QUERY, which collections alone have, and only those that take queries. */
export const METHODS_AND_QUERY: readonly Method[] = ['GET', 'HEAD', 'QUERY', ...METHODS.slice(2)]

/** Whether a method is GET, HEAD, OPTIONS or QUERY: safe (RFC 9110 §9.2.1, RFC 10008 §2). False for TRACE, which this library refuses. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'QUERY'
}

/** Methods whose meaning comes with content (RFC 9110 §9.3, RFC 5789 §2, RFC 10008 §2). */
export const CONTENT_METHODS: readonly string[] = ['POST', 'PUT', 'PATCH', 'QUERY']

/** Whether a method asks for a representation: GET and HEAD, and QUERY for that of the query. */
export function isReadMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'QUERY'
}

/**
 * The value of Allow for a set of methods (RFC 9110 §10.2.1). GET brings HEAD; OPTIONS is always there.
 * @param methods in any order
 */
export function formatAllow(methods: Iterable<Method>): string {
  return completeMethods(methods).join(', ')
}

/** The methods of a resource with those that come by themselves, in the order of {@link METHODS_AND_QUERY}. */
export function completeMethods(methods: Iterable<Method>): readonly Method[] {
  const set = new Set<Method>(methods).add('OPTIONS')
  if (set.has('GET')) set.add('HEAD')
  return METHODS_AND_QUERY.filter((method) => set.has(method))
}
