// examples/recipes/react-admin.mjs
import { createResourceClient, expectSuccess, merge, ResponseError } from 'http-resource-service/client'

/**
 * A data provider for react-admin.
 * @param {string} base
 * @param {import('http-resource-service/client').ResourceClientOptions} [options] `headers` gives the credentials
 */
export function createDataProvider(base, options) {
  const client = createResourceClient(base, options)
  const read = (resource, id) => client.read(`/${resource}/{id}`, { id })
  const getList = async (resource, /** @type {any} */ { filter, sort, pagination: { page, perPage } }) => {
    const key = sort.order === 'DESC' ? `-${sort.field}` : sort.field === 'id' ? undefined : sort.field
    const list = client.list(`/${resource}`, { query: filter, sort: key, limit: perPage, count: true })
    let [number, total] = [0, 0]
    for await (const result of list.pages()) {
      const part = expectSuccess(result)
      total = part.total ?? 0
      if (++number === page) return { data: part.items, total }
    }
    return { data: [], total }
  }
  const update = async (resource, { id, data, previousData }) => {
    const change = (current) => join(current, (seen) => ({ ...seen, ...data }), previousData)
    return { data: takeValue(await client.edit(`/${resource}/{id}`, { id }, change)) }
  }
  const remove = async (resource, { id, previousData }) => {
    const { document } = expectSuccess(await read(resource, id))
    join(document.value, () => null, previousData)
    expectSuccess(await client.remove(document))
    return { data: document.value }
  }
  const each =
    (work) =>
    async (resource, { ids, ...params }) => {
      await Promise.all(ids.map((id) => work(resource, { ...params, id })))
      return { data: ids }
    }
  return {
    getList,
    getOne: async (resource, { id }) => ({ data: takeValue(await read(resource, id)) }),
    getMany: async (resource, { ids }) => {
      const results = await Promise.all(ids.map((id) => read(resource, id)))
      return { data: results.filter(({ status }) => status !== 404 && status !== 410).map(takeValue) }
    },
    getManyReference: (resource, { target, id, filter, ...params }) =>
      getList(resource, { ...params, filter: { ...filter, [target]: id } }),
    create: async (resource, { data }) => ({ data: takeValue(await client.create(`/${resource}`, data)) }),
    update,
    updateMany: each(update),
    delete: remove,
    deleteMany: each(remove),
  }
}

/** Joins a change of what the user saw with the current value, unless both changed the same property. */
function join(current, change, seen = current) {
  const { value, conflicts } = merge(seen, change(seen), current)
  if (conflicts.length === 0) return value
  throw new ResponseError(412, undefined, 'Another user changed this meanwhile.')
}

/** The value of a success. A form shows each error of invalid content beside its input. */
function takeValue(result) {
  const errors = result.problem?.errors?.map(({ pointer, detail }) => [pointer.slice(1).replaceAll('/', '.'), detail])
  if (errors === undefined) return expectSuccess(result).document.value
  const { status, detail } = result.problem
  throw Object.assign(new ResponseError(status, result.problem, detail), {
    body: { errors: Object.fromEntries(errors) },
  })
}
