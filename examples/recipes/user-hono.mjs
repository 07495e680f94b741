// examples/recipes/user-hono.mjs
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { getCookie } from 'hono/cookie'
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import { honoMiddleware } from 'http-resource-service/hono'

const sessions = new Map([
  ['ada-session', { id: 'ada', role: 'editor' }], // filled by your login
  ['bob-session', { id: 'bob', role: 'reader' }],
])

/** @param {any} context the context of Hono */
function findUser(context) {
  const user = context.get('user')
  return user && { id: user.id, claims: { role: user.role } }
}

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  auth: {
    principal: ({ hostContext }) => findUser(hostContext),
    challenge: 'Session realm="app"',
    requireAuth: 'all',
    authorize: (principal, request) => request.method === 'GET' || principal?.claims?.role === 'editor',
  },
})

/** @type {Hono<{ Variables: { user: { id: string, role: string } | undefined } }>} */
const app = new Hono()
app.use(async (context, next) => {
  context.set('user', sessions.get(getCookie(context, 'session') ?? ''))
  await next()
})
app.use('/api/*', honoMiddleware(service, { prefix: '/api' }))
serve({ fetch: app.fetch, port: 8080 })
