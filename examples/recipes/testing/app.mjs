// examples/recipes/testing/app.mjs
import { collection, createResourceService } from 'http-resource-service'

/** @param {import('http-resource-service').ResourceStore} store */
export function createApp(store) {
  return createResourceService(store, { resources: { '/notes': collection() } })
}
