import { includesJson } from '../protocol/media-type.ts'
import type { ResourceDefinition } from './resource-definitions.ts'
import type { ServiceSettings } from './service-options.ts'

type Definitions = ReadonlyMap<string, ResourceDefinition>

/**
 * @param definitions those of the service; none where every path can be written
 * @throws TypeError for options of the service that no definition can use, and of definitions that need one of the service
 */
export function checkUse(
  { authentication, resources, given }: Pick<ServiceSettings, 'authentication' | 'resources' | 'given'>,
  definitions: Definitions,
): void {
  if (authentication === undefined) refuseRequire(definitions)
  const all = [...definitions.values()]
  if (given.operations !== undefined && !all.some(hasWork)) {
    throw new TypeError(
      "createResourceService has operations, and no definition has work to accept: create: 'accepted' or deletion: 'queued'.",
    )
  }
  const { patchFormats = [] } = given
  if (patchFormats.length > 0 && resources !== undefined && !all.some(takesPatches)) {
    throw new TypeError(
      'createResourceService has patchFormats, and no definition has a JSON type that PATCH could change.',
    )
  }
}

/** Whether a definition has work that is done after the response. */
export function hasWork({ options }: ResourceDefinition): boolean {
  return (
    ('deletion' in options && options.deletion === 'queued') || ('create' in options && options.create === 'accepted')
  )
}

/** Whether the kind and the types of a definition have PATCH, which its methods may leave out. */
function takesPatches({ options }: ResourceDefinition): boolean {
  const types = 'types' in options ? options.types : undefined
  return types === undefined || types.some(includesJson)
}

/** @throws TypeError for a definition that asks for credentials which no scheme checks: it would be open to every client */
function refuseRequire(definitions: Definitions): void {
  for (const [pattern, { options }] of definitions) {
    if (options.requireAuth === undefined || options.requireAuth === 'none') continue
    throw new TypeError(`${pattern} requires credentials, and the service has no "auth" that could check them.`)
  }
}
