// examples/recipes/commonjs.cjs
const { createServer } = require('node:http')
const { collection, createResourceService, memoryStore } = require('http-resource-service')

const service = createResourceService(memoryStore(), { resources: { '/notes': collection() } })
createServer(service).listen(8080)
