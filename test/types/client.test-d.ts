// Compiled, never run: `tsc -p test` fails when the client takes what a definition does not allow.
import { createResourceClient, expectSuccess, type ResourceDocument, type ResourceHandle } from '../../src/client.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import {
  type CollectionDefinition,
  collection,
  type DocumentDefinition,
} from '../../src/service/resource-definitions.ts'
import type { FurtherResources, resources } from '../client/resources.ts'
import type { Equal, Expect } from './equal.ts'

const client = createResourceClient<typeof resources>('https://api.example')
const further = createResourceClient<FurtherResources>('https://api.example')
const untyped = createResourceClient('https://api.example')

const { document: user } = expectSuccess(await client.read('/users/{id}', { id: 1 }))
const { document: config } = expectSuccess(await client.read('/config/app'))
const created = await client.create('/users', { name: 'Ada' })
const accepted = await client.create('/jobs', { pages: 1 })
const removal = await client.remove('/jobs/{id}', { id: 1 }, 'any')
const removalOfDocument = await client.remove('/spool/{name}', { name: 'a' }, 'any')
const queued = expectSuccess(removalOfDocument)
if (queued.status !== 202) throw new Error('It was removed by an attempt before, and has no monitor.')
const { document: monitor } = expectSuccess(await client.wait(queued.operation))
const read = await client.read('/users/{id}', { id: 1 })
const edited = await client.edit(user, (value) => value)
const { file } = expectSuccess(await client.download('/people/{id}/photo', { id: 1 }))
const albums = {
  '/albums': collection({ files: { cover: { replaceable: true }, print: { replaceable: false }, note: {} } }),
  '/': collection({ files: { logo: { replaceable: true, describe: ({ size }) => ({ size }) } } }),
}
const album = createResourceClient<typeof albums>('https://api.example')
function counted<Value>(options: CollectionOptions<Value>) {
  return collection({ ...options, count: true })
}
declare const passedOn: { '/users': ReturnType<typeof counted<{ name: string }>> }
const { document: passed } = expectSuccess(
  await createResourceClient<typeof passedOn>('/').read('/users/{id}', { id: 1 }),
)
declare const annotated: { '/users': CollectionDefinition<{ name: string }>; '/notes/{name}': DocumentDefinition }
const named = createResourceClient<typeof annotated>('/')
const { document: namedUser } = expectSuccess(await named.read('/users/{id}', { id: 1 }))
declare const foreign: ResourceHandle<'/elsewhere'>

export type Results = [
  // The members of a monitor, as the OpenAPI description has them.
  Expect<Equal<typeof monitor.value.principal, { readonly scheme: string; readonly id: string } | undefined>>,
  Expect<Equal<typeof monitor.value.result, { readonly deleted: true; readonly id: string | number } | undefined>>,
  Expect<Equal<typeof user.value.name, string>>,
  Expect<Equal<typeof user.value.role, 'admin' | 'member'>>,
  // A Date is text in JSON.
  Expect<Equal<typeof user.value.born, string | undefined>>,
  Expect<Equal<typeof user.value.id, number>>,
  Expect<Equal<typeof config.value, { theme: string; size: number }>>,
  Expect<Equal<(typeof read)['status'], 200 | 401 | 403 | 404 | 410>>,
  Expect<Equal<(typeof edited)['status'], 200 | 401 | 403 | 404 | 409 | 410 | 412 | 413 | 422>>,
  Expect<Equal<Extract<typeof created, { ok: true }>['status'], 201>>,
  Expect<Equal<Extract<typeof accepted, { ok: true }>['status'], 202>>,
  Expect<Equal<Extract<typeof removal, { ok: true }>['status'], 202 | 204>>,
  Expect<Equal<Extract<typeof removalOfDocument, { ok: true }>['status'], 202 | 204>>,
  Expect<Equal<Extract<typeof read, { status: 404 }>['problem']['status'], 404>>,
  Expect<Equal<typeof file.contentType, string>>,
  // The options of a definition that a function has made are not known.
  Expect<Equal<typeof passed.value.name, string>>,
  Expect<Equal<typeof namedUser.value.name, string>>,
  Expect<Equal<typeof namedUser.value.id, number>>,
]

// What is allowed.
await client.replace(user, { name: 'Ada', born: new Date() })
await client.replace(user, { ...user.value, name: 'Ada' })
await client.replace('/config/app', 'any', { theme: 'dark', size: 1 })
await client.edit('/config/app', (value) => ({ ...value, theme: 'light' }))
await client.edit('/users/{id}', { id: 1 }, (value) => ({ ...value, role: 'admin' }))
await client.edit(user, { ...user.value, role: 'admin' })
async function promote(document: ResourceDocument<{ name: string }, '/users/{id}'>): Promise<void> {
  await client.edit(document, (value) => ({ ...value, role: 'admin' }))
}
await promote(user)
await client.remove(user)
await client.upload('/texts/{owner}/{name}', { owner: 'ada', name: 'a' }, 'absent', 'text')
await client.read('/files/{name}', { name: 'a.json' })
const cover = expectSuccess(await album.upload('/albums/{id}/cover', { id: 1 }, 'absent', new Uint8Array(3)))
await album.upload(cover.resource, 'bytes')
await album.download('/albums/{id}/note', { id: 1 })
await album.upload('/{id}/logo', { id: 1 }, 'any', 'bytes')
for await (const item of client.list('/blobs')) item.href.length
await further.list('/tasks', { query: { status: ['open'], dueAt: { gte: new Date() } }, sort: ['-dueAt', 'priority'] })
createResourceClient<FurtherResources>('/', { keyed: ['/tasks'] })
createResourceClient<typeof resources>('/', { keyed: ['/orders'] })
// A program passes on what it may not have been given, also under `exactOptionalPropertyTypes`.
declare const given: { signal: AbortSignal | undefined; timeout: number | undefined }
createResourceClient('/', { token: process.env['TOKEN'] })
await client.read('/users/{id}', { id: 1 }, given)
await client.create('/users', { name: 'Ada' }, given)
await client.edit(user, { ...user.value, role: 'admin' }, given)
await album.upload(cover.resource, 'bytes', given)
await album.download('/albums/{id}/note', { id: 1 }, given)
await further.list('/tasks', given)
declare const filter: {
  status?: string | undefined
  after?: Date | undefined
  count: boolean | undefined
  limit: number | undefined
}
further.list('/tasks', {
  query: { status: filter.status, dueAt: { gte: filter.after } },
  sort: undefined,
  limit: filter.limit,
})
further.list('/tasks', { query: undefined, count: filter.count })
untyped.list('/tasks', { query: { status: filter.status, dueAt: { gte: filter.after } }, limit: filter.limit })
for await (const page of further.list('/tasks', { limit: 20, ...given }).pages())
  if (page.ok) further.list('/tasks', { after: page.next, limit: 20 })
await untyped.edit('/anything/at/all', (value) => value)
await untyped.replace('/a/{b}', { b: 1 }, 'any', { c: 1 })

// @ts-expect-error a file that comes with its item only
await album.upload('/albums/{id}/note', { id: 1 }, 'any', 'bytes')
// @ts-expect-error the same, said in the definition
await album.upload('/albums/{id}/print', { id: 1 }, 'any', 'bytes')
// @ts-expect-error a file is not removed alone
await album.remove('/albums/{id}/cover', { id: 1 }, 'any')
// @ts-expect-error an option of a file that does not exist
collection({ files: { cover: { replacable: true } } })
// @ts-expect-error a path that no definition has
await client.read('/nothing')
// @ts-expect-error parameters are missing
await client.read('/users/{id}')
// @ts-expect-error a parameter of another name
await client.read('/users/{id}', { name: 1 })
// @ts-expect-error a parameter of another type
await client.read('/users/{id}', { id: true })
// @ts-expect-error one of two parameters is missing
await client.download('/texts/{owner}/{name}', { owner: 'ada' })
// @ts-expect-error parameters where the path has none
await client.read('/config/app', { id: 1 })
// @ts-expect-error a collection is listed, not read
await client.read('/users')
// @ts-expect-error an item is read, not listed
client.list('/users/{id}', { id: 1 })
// @ts-expect-error content that is not JSON is downloaded, not read
await client.read('/texts/{owner}/{name}', { owner: 'ada', name: 'a' })
// @ts-expect-error JSON is read, not downloaded
await client.download('/users/{id}', { id: 1 })
// @ts-expect-error the result may be a refusal
void read.document
if (read.ok) {
  // @ts-expect-error a property that the schema does not have
  void read.document.value.email
  // @ts-expect-error a success has no problem
  void read.problem
  // @ts-expect-error what was read is changed by requests, not by assignment of its tag
  read.document.entityTag = '"1"'
}
// @ts-expect-error a status that reading does not have
if (read.status === 412) void 0
// @ts-expect-error If-Match is forgotten
await client.replace('/config/app', { theme: 'dark', size: 1 })
// @ts-expect-error If-Match is forgotten, with parameters
await client.replace('/users/{id}', { id: 1 }, { name: 'Ada' })
// @ts-expect-error a tag alone is not a document
await client.replace('"1"', { name: 'Ada' })
// @ts-expect-error a match that there is not
await client.replace('/config/app', 'whatever', { theme: 'dark', size: 1 })
// @ts-expect-error a property of another type
await client.replace(user, { name: 1 })
// @ts-expect-error a property is missing
await client.replace(config, { theme: 'dark' })
// @ts-expect-error a property that the schema does not have
await client.replace(config, { theme: 'dark', size: 1, colour: 'red' })
// @ts-expect-error the document of another service
await client.replace(foreign, { name: 'Ada' })
// @ts-expect-error the document of another path with another type
await client.replace(config, { name: 'Ada' })
// @ts-expect-error If-Match is forgotten
await client.remove('/users/{id}', { id: 1 })
// @ts-expect-error a resource that is absent cannot be removed
await client.remove('/users/{id}', { id: 1 }, 'absent')
// @ts-expect-error a singleton has no DELETE
await client.remove(config)
// @ts-expect-error the items of this collection can only be read
await client.edit('/log/{id}', { id: 1 }, (value) => value)
// @ts-expect-error the items of this collection can only be read
await client.remove('/log/{id}', { id: 1 }, 'any')
// @ts-expect-error accepted items cannot be replaced
await client.replace('/jobs/{id}', { id: 1 }, 'any', { pages: 1 })
// @ts-expect-error a change gives a document
await client.edit(config, () => undefined)
// @ts-expect-error a change of another type
await client.edit(config, (value) => ({ ...value, size: 'large' }))
// @ts-expect-error a value has no document that it was made from
await client.edit('/config/app', { theme: 'dark', size: 1 })
// @ts-expect-error only collections create
await client.create('/config/app', { theme: 'dark', size: 1 })
// @ts-expect-error a property of another type
await client.create('/users', { name: 'Ada', role: 'owner' })
// @ts-expect-error a collection without files takes no form
await client.create('/users', new FormData())
// @ts-expect-error bytes where JSON is taken
await client.create('/users', new Blob(['{}']))
// @ts-expect-error an item was created: there is no operation
if (created.ok) void created.operation
// @ts-expect-error work was accepted: there is no document yet
if (accepted.ok) void accepted.document
// @ts-expect-error a document is not an operation
await client.wait('/jobs/1')
// @ts-expect-error files of items can only be read
await client.upload(file, 'pixels')
// @ts-expect-error If-Match is forgotten
await client.upload('/files/{name}', { name: 'a' }, 'text')
// @ts-expect-error content that cannot be sent again
await client.upload('/files/{name}', { name: 'a' }, 'absent', new ReadableStream())
// @ts-expect-error a property that cannot be asked for
further.list('/tasks', { query: { owner: 'ada' } })
// @ts-expect-error a value of another type
further.list('/tasks', { query: { priority: 'high' } })
// @ts-expect-error: the property is sensitive, and must not be in a target
further.list('/tasks', { query: { phone: '+49 30 1' } })
// @ts-expect-error: the property is sensitive
further.list('/tasks', { sort: '-phone' })
// @ts-expect-error an operator that makes no sense for a boolean
further.list('/tasks', { query: { done: { gt: true } } })
// @ts-expect-error a sort key that there is not
further.list('/tasks', { sort: '-owner' })
// @ts-expect-error a collection that keeps no keys
createResourceClient<typeof resources>('/', { keyed: ['/users'] })
// @ts-expect-error an option that does not exist
createResourceClient('/', { retry: 1 })
