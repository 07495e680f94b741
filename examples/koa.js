// The demo on Koa 3 (Koa 2 is the same): npm run start:koa
import { createServer } from 'node:http'
import { attach } from 'http-resource-service'
import { koaMiddleware } from 'http-resource-service/koa'
import Koa from 'koa'
import mount from 'koa-mount'
import { runDemo } from './demo/run.js'

await runDemo((service) => {
  const app = new Koa()
  app.use(mount('/api', koaMiddleware(service)))
  app.use(koaMiddleware(service))
  const server = createServer(app.callback())
  attach(server, service)
  return server
})
