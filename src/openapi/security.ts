import type { JsonObject } from '../core/json.ts'
import type { Components } from './components.ts'
import type { DescribedMethod, Facts } from './facts.ts'
import type { ServiceView } from './service-view.ts'

/** The credentials that an operation takes; `{}` among them where it goes on without. */
export function describeSecurity(
  { schemes = [] }: ServiceView,
  { credentials }: Facts,
  method: DescribedMethod,
  components: Components,
): JsonObject {
  const isNeeded = credentials === 'all' || (credentials === 'writes' && method !== 'GET' && method !== 'QUERY')
  const requirements = schemes.map((name) => {
    // RFC 9110 §16.4.1: the names are those of the registry of authentication schemes.
    components.add('securitySchemes', name, { type: 'http', scheme: name.toLowerCase() })
    return { [name]: [] }
  })
  return { security: isNeeded || requirements.length === 0 ? requirements : [...requirements, {}] }
}

/** A sentence on credentials, where the requirement alone does not say it. */
export function explainSecurity({ schemes }: ServiceView, { credentials }: Facts): readonly string[] {
  if (schemes === undefined) return []
  const some = credentials === 'some' ? ['May need credentials: a function of the service decides.'] : []
  return schemes.length === 0 && credentials !== 'none'
    ? [...some, 'Users are found by the host of the service.']
    : some
}
