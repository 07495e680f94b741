/** The methods this library knows (RFC 9110 §9, RFC 5789). */

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

/** In the order in which Allow and Access-Control-Allow-Methods list them. */
export const METHODS: readonly Method[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Whether `method` is one of the seven. Names are case-sensitive (RFC 9110 §9.1). */
export function isKnownMethod(method: string): method is Method {
  return (METHODS as readonly string[]).includes(method)
}

/** Whether a method is safe: the client does not ask for a change of state (RFC 9110 §9.2.1). */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

/**
 * The value of Allow for a set of methods (RFC 9110 §10.2.1). GET brings HEAD; OPTIONS is always there.
 * @param methods in any order
 */
export function formatAllow(methods: Iterable<Method>): string {
  return completeMethods(methods).join(', ')
}

/** The methods of a resource with those that come by themselves, in the order of {@link METHODS}. */
export function completeMethods(methods: Iterable<Method>): readonly Method[] {
  const set = new Set<Method>(methods).add('OPTIONS')
  if (set.has('GET')) set.add('HEAD')
  return METHODS.filter((method) => set.has(method))
}
