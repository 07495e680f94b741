// The demo on Hono, on @hono/node-server: npm run start:hono
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { attach } from 'http-resource-service'
import { honoMiddleware } from 'http-resource-service/hono'
import { runDemo } from './demo/run.js'

await runDemo((service) => {
  const app = new Hono()
  app.use('/api/*', honoMiddleware(service, { prefix: '/api' }))
  app.use('*', honoMiddleware(service))
  const server = createAdaptorServer({ fetch: app.fetch })
  attach(server, service)
  return server
})
