// The demo on Fastify 5: npm run start:fastify

import fastify from 'fastify'
import { attach } from 'http-resource-service'
import { fastifyPlugin } from 'http-resource-service/fastify'
import { runDemo } from './demo/run.js'

await runDemo(async (service) => {
  // Targets that Fastify's router refuses by itself are answered by the service too.
  const app = fastify({ frameworkErrors: (_error, request, reply) => answerDirectly(service, request, reply) })
  await app.register(fastifyPlugin(service), { prefix: '/api' })
  await app.register(fastifyPlugin(service))
  await app.ready()
  attach(app.server, service)
  return app.server
})

function answerDirectly(service, request, reply) {
  reply.hijack()
  service(request.raw, reply.raw)
}
