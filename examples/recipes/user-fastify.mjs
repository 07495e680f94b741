// examples/recipes/user-fastify.mjs
import cookie from '@fastify/cookie'
import fastify from 'fastify'
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import { fastifyPlugin } from 'http-resource-service/fastify'

const sessions = new Map([
  ['ada-session', { id: 'ada', role: 'editor' }], // filled by your login
  ['bob-session', { id: 'bob', role: 'reader' }],
])

/** @param {any} request the request of Fastify */
const findUser = ({ user }) => user && { id: user.id, claims: { role: user.role } }

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  auth: {
    principal: ({ hostContext }) => findUser(hostContext),
    challenge: 'Session realm="app"',
    requireAuth: 'all',
    authorize: (principal, request) => request.method === 'GET' || principal?.claims?.role === 'editor',
  },
})

const app = fastify()
await app.register(cookie)
app.decorateRequest('user', undefined)
app.addHook('onRequest', async (request) => {
  Object.assign(request, { user: sessions.get(request.cookies.session ?? '') })
})
await app.register(fastifyPlugin(service), { prefix: '/api' })
await app.listen({ port: 8080 })
