// examples/recipes/json-server.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import { createResourceClient, expectSuccess } from 'http-resource-service/client'
import { preflight } from 'http-resource-service/preflight'

const resources = {
  '/posts': collection({
    query: { id: 'number', title: 'string', views: 'number', authorId: 'number' },
    count: true,
    pageSize: { default: 500 },
    jsonAsMergePatch: true, // PATCH with application/json
    putResponse: 'representation',
    deleteResponse: 'representation',
  }),
}
const service = createResourceService(memoryStore(), { resources })
const cors = preflight({ origins: ['http://localhost:3000'], exposedHeaders: ['Link', 'X-Total-Count'] })

/** The query of json-server 0.17 as a query of the service, and the part of the list that it asks for. */
function translate(parameters) {
  const { _sort, _order = '', _page = 1, _limit = 10, _start, _end } = Object.fromEntries(parameters)
  const isPart = ['_page', '_limit', '_start', '_end'].some((name) => parameters.has(name))
  const start = Number(_start ?? (_page - 1) * _limit)
  const filters = [...parameters].filter(([name]) => !/^_(?:page|limit|start|end|sort|order)$/.test(name))
  const query = new URLSearchParams(filters.map(([name, value]) => [name.replace(/_(gte|lte|ne)$/, '[$1]'), value]))
  const orders = _order.toLowerCase().split(',')
  if (_sort)
    query.set(
      'sort',
      _sort
        .split(',')
        .map((key, i) => (orders[i] === 'desc' ? `-${key}` : key))
        .join(),
    )
  return { query, isPart, start, end: Number(_end ?? start + Number(_limit)) }
}

/** Pages have numbers in json-server and cursors in the service: this reads the list up to the end of the part. */
async function respond(req, res) {
  const [pathname, search] = req.url.split(/\?(.*)/s)
  if (req.method !== 'GET' || !search || !Object.hasOwn(resources, pathname)) return service(req, res)
  const { query, isPart, start, end } = translate(new URLSearchParams(search))
  const ids = query.getAll('id')
  const isLong = ids.length > 8 && ids.length <= 100 && ids.length === query.size // a condition takes eight values
  if (isPart && !(start >= 0 && start < end && end <= 5000)) return service(req, res) // 400: _start is not known
  if (isPart) query.append('count', 'true')
  if (isPart) query.append('limit', String(Math.min(end, 500)))
  req.url = `${pathname}?${query}`
  if (!isPart && !isLong) return service(req, res)

  const { authorization } = req.headers
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const client = createResourceClient(`http://127.0.0.1:${port}`, { headers: authorization ? { authorization } : {} })
  if (isLong) {
    const results = await Promise.all(ids.map((id) => client.read(`${pathname}/{id}`, { id })))
    return writeJson(
      res,
      results.flatMap((result) => (result.ok ? [result.document.value] : [])),
    )
  }
  const items = []
  for await (const result of client.list(req.url).pages()) {
    if (!result.ok && items.length === 0) return service(req, res) // says what is wrong with the query
    const page = expectSuccess(result)
    res.setHeader('X-Total-Count', String(page.total))
    if (items.push(...page.items) >= end) break
  }
  writeJson(res, items.slice(start, end))
}

const writeJson = (res, value) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(value))

const server = createServer((req, res) => {
  cors(req, res, () => respond(req, res).catch(() => res.writeHead(502).end()))
})
server.listen(8080)
