// Tokens of an OpenID provider or OAuth server: ISSUER=https://issuer.example AUDIENCE=https://api.example
import { createServer } from 'node:http'
import { bearer, collection, createResourceService, jwt, memoryStore } from 'http-resource-service'

const issuer = process.env.ISSUER ?? 'https://issuer.example'
const tokens = jwt({
  jwks: process.env.JWKS ?? `${issuer}/jwks`,
  issuer,
  audience: process.env.AUDIENCE ?? 'https://api.example',
  algorithms: ['RS256', 'ES256', 'EdDSA'],
})

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  auth: {
    // Reading is free; writing needs a token with the scope.
    schemes: [bearer(tokens, { scope: (request) => (request.method === 'GET' ? [] : ['notes:write']) })],
    requireAuth: 'writes',
  },
})
const server = createServer(service)
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
