import { note } from '../core/diagnostics.ts'
import { malformedField } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'

/** The field that names the method that is meant. Scripts of another origin need leave for it in the preflight. */
export const METHOD_OVERRIDE_FIELD = 'X-HTTP-Method-Override'

const NAME = METHOD_OVERRIDE_FIELD.toLowerCase()

/**
 * The step that gives a POST the method it names: PUT, PATCH or DELETE. On other methods the field is ignored, so that
 * nothing which looks safe, or passed a guard as something else, turns into a change.
 * @throws HttpError 400 for another method, or for a field that occurs twice
 */
export function overrideMethod(exchange: Exchange): undefined {
  if (exchange.method !== 'POST') return undefined
  const method = exchange.field(NAME)
  if (method === undefined) return undefined
  // Two of them are one value with a comma.
  if (method !== 'PUT' && method !== 'PATCH' && method !== 'DELETE') {
    throw malformedField(`${METHOD_OVERRIDE_FIELD} names one of PUT, PATCH and DELETE.`)
  }
  note(exchange, method)
  exchange.method = method
  return undefined
}
