import type { ServiceView } from '../openapi/service-view.ts'
import type { RouteEntry } from './routes.ts'
import type { ServiceSettings } from './service-options.ts'

/** What the description of a service reads of its settings: the one place where options become a description. */
export function createView(settings: ServiceSettings, routes: readonly RouteEntry[]): ServiceView {
  const { authentication } = settings
  const require = authentication?.require ?? 'all'
  return {
    routes,
    schemes: authentication && (authentication.schemes ?? []).map(({ name }) => name),
    credentials: authentication === undefined ? 'none' : typeof require === 'function' ? 'some' : require,
    refusesCleartext: settings.https === 'required',
    refusesOrigins: settings.cors?.rejectOrigin === true,
    formatsErrors: settings.formatError !== undefined,
    mountPath: settings.mountPath ?? '',
  }
}
