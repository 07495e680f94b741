import { required } from './core/option-values.ts'
import { type OptionTable, resolveOptions } from './core/options.ts'
import { createDocument, type OpenApiDocument } from './openapi/create-document.ts'
import { findView, OPENAPI_OPTIONS, type OpenApiOptions } from './openapi/inputs.ts'
import type { ResourceService } from './service/create-resource-service.ts'

export type { OpenApiDocument } from './openapi/create-document.ts'
export type { OpenApiOptions } from './openapi/inputs.ts'

const OPTIONS: OptionTable<OpenApiOptions> = { ...OPENAPI_OPTIONS, info: required(OPENAPI_OPTIONS.info) }

/**
 * Describes a service in OpenAPI, from the definitions that it serves by. The same service always gives the same
 * document, without dates and in one order, so that it can be committed and compared.
 * @param service a service of {@link createResourceService}
 * @param options what no definition says: `info`, and where the service is
 * @returns a plain object, to be written as JSON; see {@link OpenApiDocument}
 * @throws TypeError for any other function than a service, and for options that do not exist
 * @example
 * const description = openapi(service, { info: { title: 'Users', version: '1.0.0' } })
 */
export function openapi(service: ResourceService, options: OpenApiOptions): OpenApiDocument {
  const view = findView(service)
  if (view === undefined) throw new TypeError('openapi takes a service, as createResourceService(store) returns it.')
  return createDocument(view, resolveOptions('openapi', options, OPTIONS))
}
