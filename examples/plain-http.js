// The demo on node:http: npm start
import { createServer } from 'node:http'
import { attach, mount } from 'http-resource-service'
import { runDemo } from './demo/run.js'

await runDemo((service) => {
  const api = mount('/api', service)
  const server = createServer((req, res) => api(req, res, () => service(req, res)))
  attach(server, service)
  return server
})
