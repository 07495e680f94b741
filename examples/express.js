// The demo on Express 5 (Express 4 is the same): npm run start:express
import { createServer } from 'node:http'
import express from 'express'
import { attach } from 'http-resource-service'
import { runDemo } from './demo/run.js'

await runDemo((service) => {
  const app = express()
  app.disable('x-powered-by')
  app.use('/api', service)
  app.use(service)
  const server = createServer(app)
  attach(server, service)
  return server
})
