import {
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/sdk/client/auth.js'
import * as oauth from 'oauth4webapi'
import { afterEach, describe, expect, it } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type RunningHost, startHost } from '../support/hosts.ts'

/** The same service, whatever its URL is. */
const createService = (resource: string): Handler =>
  createResourceService(memoryStore(), {
    resources: { '/notes': collection() },
    auth: {
      schemes: [
        bearer(() => false, {
          metadata: { resource, authorizationServers: ['https://login.example'], scopes: ['notes:read'] },
        }),
      ],
    },
  })

const documentOf = (resource: string) => ({
  resource,
  authorization_servers: ['https://login.example'],
  scopes_supported: ['notes:read'],
  bearer_methods_supported: ['header'],
})

let host: RunningHost | undefined
afterEach(async () => {
  await host?.close()
  host = undefined
})

/** Sends what a client asks of https://api.example to the server that runs. */
const fetchFromHost = (url: string | URL, init?: object): Promise<Response> => {
  const { origin, pathname, search } = new URL(url)
  expect(origin).toBe('https://api.example')
  return fetch(`http://127.0.0.1:${host!.port}${pathname}${search}`, init)
}

describe('metadata of a protected resource', () => {
  const resources = [
    'https://api.example',
    'https://api.example/',
    'https://api.example/api',
    'https://api.example/api/',
  ]

  it.each(resources)('oauth4webapi discovers %s (RFC 9728 §3.3)', async (resource) => {
    host = await startHost('Express 5', createService(resource), '/api')
    const url = new URL(resource)
    const response = await oauth.resourceDiscoveryRequest(url, { [oauth.customFetch]: fetchFromHost })
    const found = await oauth.processResourceDiscoveryResponse(url, response)
    expect(found).toEqual(documentOf(resource))
  })

  it.each(resources)('the MCP SDK discovers %s', async (resource) => {
    host = await startHost('Express 5', createService(resource), '/api')
    const found = await discoverOAuthProtectedResourceMetadata(resource, {}, fetchFromHost)
    expect(found).toEqual(documentOf(resource))
  })

  it('both find the document by the challenge alone (RFC 9728 §5.1)', async () => {
    host = await startHost('Express 5', createService('https://api.example/api'), '/api')
    const url = 'https://api.example/.well-known/oauth-protected-resource/api'
    const refused = await fetch(`http://127.0.0.1:${host.port}/api/notes`)
    const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused)
    expect(resourceMetadataUrl?.href).toBe(url)
    const found = await discoverOAuthProtectedResourceMetadata(
      'https://api.example/api',
      resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl },
      fetchFromHost,
    )
    expect(found.authorization_servers).toEqual(['https://login.example'])
    const attempt = oauth.protectedResourceRequest(
      'good-for-nothing',
      'GET',
      new URL('https://api.example/api/notes'),
      undefined,
      undefined,
      { [oauth.customFetch]: fetchFromHost },
    )
    const error = await attempt.catch((error: unknown) => error)
    expect(error).toBeInstanceOf(oauth.WWWAuthenticateChallengeError)
    const [challenge] = (error as oauth.WWWAuthenticateChallengeError).cause
    expect([challenge?.scheme, challenge?.parameters.resource_metadata]).toEqual(['bearer', url])
  })
})
