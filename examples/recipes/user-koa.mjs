// examples/recipes/user-koa.mjs
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import { koaMiddleware } from 'http-resource-service/koa'
import Koa from 'koa'

const sessions = new Map([
  ['ada-session', { id: 'ada', role: 'editor' }], // filled by your login
  ['bob-session', { id: 'bob', role: 'reader' }],
])

/** @param {any} context the context of Koa */
const findUser = ({ state: { user } }) => user && { id: user.id, claims: { role: user.role } }

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  auth: {
    principal: ({ hostContext }) => findUser(hostContext),
    challenge: 'Session realm="app"',
    requireAuth: 'all',
    authorize: (principal, request) => request.method === 'GET' || principal?.claims?.role === 'editor',
  },
})

const app = new Koa()
app.use((context, next) => {
  context.state.user = sessions.get(context.cookies.get('session') ?? '')
  return next()
})
app.use(koaMiddleware(service, { prefix: '/api' }))
app.listen(8080)
