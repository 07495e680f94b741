import type { CollectionOptions } from '../../src/service/collection-options.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { MERGE_PATCH, startService, type Target } from '../writes/support.ts'

/** The items of the user that a field names; the boss sees all. */
export const scope: NonNullable<CollectionOptions['scope']> = ({ headers }) =>
  headers['x-user'] === 'boss' ? undefined : { owner: headers['x-user'] as string }

/** Serves resources until the test has ended. */
export async function start(
  store: ResourceStore,
  resources: NonNullable<ServiceOptions['resources']>,
  more: ServiceOptions = {},
) {
  const target = await startService({ ...more, resources }, store)
  closeAfterTest(() => target.close())
  return target
}

export const as = (user: string) => ({ 'X-User': user })
export const patchOf = (user: string, value: unknown) => ({
  fields: { ...MERGE_PATCH, ...as(user) },
  body: JSON.stringify(value),
})
export const png = (user: string, body: string, more: Readonly<Record<string, string>> = {}) => ({
  fields: { 'Content-Type': 'image/png', ...as(user), ...more },
  body,
})

/** Everything that a client could tell two answers apart by. */
export const shown = ({ status, fields, text }: Answer, path: string) => ({
  status,
  fields: fields.filter(([name]) => name !== 'date'),
  text: text.replaceAll(path, ''),
})

/** The items of a list; the text of any other answer. */
export async function list(target: Target, user: string, path: string) {
  const { status, text } = await target.send('GET', path, { fields: as(user) })
  return status === 200 ? JSON.parse(text) : text
}
