// examples/recipes/testing/commonjs/notes.test.cjs
const { test } = require('@jest/globals')
const { bearer, collection, createResourceService, jwt, memoryStore } = require('http-resource-service')
const request = require('supertest')

test('asks for a token', async () => {
  const tokens = jwt({
    keys: new Uint8Array(32),
    algorithms: ['HS256'],
    issuer: 'https://issuer.example',
    audience: 'notes',
  })
  const service = createResourceService(memoryStore(), {
    resources: { '/notes': collection() },
    auth: { schemes: [bearer(tokens)], requireAuth: 'writes' },
  })
  await request(service).get('/notes').expect(200, [])
  await request(service).post('/notes').auth('eyJhbGciOiJIUzI1NiJ9.e30.AAAA', { type: 'bearer' }).send({}).expect(401)
})
