// examples/recipes/react-admin.mjs
import { createResourceClient, expectSuccess } from 'http-resource-service/client'

/**
 * A data provider for react-admin.
 * @param {string} base
 * @param {import('http-resource-service/client').ResourceClientOptions} [options] `headers` gives the credentials
 */
export function createDataProvider(base, options) {
  const client = createResourceClient(base, options)
  const documents = new Map() // what the user sees, each with the tag of its state
  const keep = (/** @type {any} */ { document }) => {
    documents.set(new URL(document.url).pathname, document)
    return { data: document.value }
  }
  const read = async (path) => keep(expectSuccess(await client.read(path)))
  const find = async (path) => {
    const key = new URL(path.slice(1), `${base.replace(/\/$/, '')}/`).pathname
    if (!documents.has(key)) await read(path)
    return documents.get(key)
  }
  const getList = async (resource, /** @type {any} */ { filter = {}, sort, pagination: { page, perPage } }) => {
    const order =
      sort === undefined || sort.field === 'id' ? undefined : (sort.order === 'DESC' ? '-' : '') + sort.field
    const pages = client.list(`/${resource}`, { query: filter, sort: order, limit: perPage, count: true }).pages()
    let total = 0
    for (let number = 1; number <= page; number++) {
      const { value, done } = await pages.next()
      if (done) return { data: [], total }
      const part = expectSuccess(value)
      total = part.total ?? 0
      if (number === page) return { data: part.items, total }
    }
  }
  const getOne = (resource, { id }) => read(`/${resource}/${id}`)
  const update = async (resource, { id, data }) =>
    keep(expectSuccess(await client.replace(await find(`/${resource}/${id}`), data)))
  const remove = async (resource, { id, previousData }) => {
    const document = await find(`/${resource}/${id}`)
    expectSuccess(await client.remove(document))
    documents.delete(new URL(document.url).pathname)
    return { data: previousData ?? document.value }
  }
  const each = (work) => (resource, params) => Promise.all(params.ids.map((id) => work(resource, { ...params, id })))
  return {
    getList,
    getOne,
    getMany: async (...args) => ({ data: (await each(getOne)(...args)).map(({ data }) => data) }),
    getManyReference: (resource, { target, id, filter, ...params }) =>
      getList(resource, { ...params, filter: { ...filter, [target]: id } }),
    create: async (resource, { data }) => keep(expectSuccess(await client.create(`/${resource}`, data))),
    update,
    updateMany: async (...args) => ({ data: (await each(update)(...args)).map(({ data }) => data.id) }),
    delete: remove,
    deleteMany: async (...args) => ({ data: (await each(remove)(...args)).map(({ data }) => data.id) }),
  }
}
