// examples/recipes/json-server.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: {
    '/posts': collection({
      query: { title: 'string', views: 'number', authorId: 'number' },
      count: true,
      jsonAsMergePatch: true, // PATCH with application/json
      putResponse: 'representation',
      deleteResponse: 'representation',
    }),
  },
  cors: { origins: ['http://localhost:3000'] },
})

/** The query of json-server 0.17 as a query of the service, and the part of the list that it asks for. */
function translate(parameters) {
  const target = new URLSearchParams()
  for (const [name, value] of parameters) {
    const translated = name.replace(/(.)_(gte|lte|ne)$/, '$1[$2]')
    if (!/^_(?:page|limit|start|end|sort|order)$/.test(name)) target.append(translated, value)
  }
  const [keys, orders] = ['_sort', '_order'].map((name) => parameters.get(name)?.split(',') ?? [])
  if (keys.length > 0) target.set('sort', keys.map((key, i) => (orders[i] === 'desc' ? `-${key}` : key)).join())
  const read = (name, otherwise) => Number(parameters.get(name) ?? otherwise)
  const limit = read('_limit', 10)
  const start = read('_start', (read('_page', 1) - 1) * limit)
  const size = parameters.has('_end') ? read('_end') - start : limit
  return { target, start, size, isPart: ['_page', '_limit', '_start', '_end'].some((name) => parameters.has(name)) }
}

/** Pages have numbers in json-server and cursors in the service: this reads up to the page that is asked for. */
async function findTarget(pathname, { target, start, size, isPart }, headers) {
  if (!isPart) return `${pathname}?${target}`
  if (!(start >= 0 && start <= 5000)) return `${pathname}?_start=${start}` // 400: _start is not defined
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  let url = new URL(`${pathname}?${target}`, `http://127.0.0.1:${port}`)
  url.searchParams.set('count', 'true')
  for (let passed = 0; passed < start; ) {
    const step = Math.min(start - passed, 500)
    url.searchParams.set('limit', String(step))
    const response = await fetch(url, { headers })
    if (response.status !== 200) break // the service answers the request itself with the same refusal
    const next = /<([^>]*)>; rel="?next/.exec(response.headers.get('link') ?? '')?.[1]
    if (next === undefined) return `${pathname}/beyond-the-end` // 404
    url = new URL(next, url)
    passed += step
  }
  url.searchParams.set('limit', String(size))
  return url.pathname + url.search
}

const server = createServer(async (req, res) => {
  const [pathname, query = ''] = (req.url ?? '').split('?', 2)
  const parameters = new URLSearchParams(query)
  const isTheirs = [...parameters.keys()].some((name) => /^_|_(?:gte|lte|ne)$/.test(name))
  if (req.method === 'GET' && isTheirs) {
    const { authorization } = req.headers
    const headers = authorization === undefined ? {} : { authorization }
    try {
      req.url = await findTarget(pathname, translate(parameters), headers)
    } catch {
      return res.writeHead(502).end()
    }
  }
  return service(req, res)
})
server.listen(8080)
