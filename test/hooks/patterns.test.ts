import { afterEach, describe, expect, it } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { createResourceClient, expectSuccess } from '../../src/client.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { start } from '../client/servers.ts'
import { jsonOf, startService, type Target } from '../writes/support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const text = (body: string) => ({ fields: { 'Content-Type': 'text/plain' }, body })

describe('a pattern with {path...}', () => {
  it('takes paths of any depth below it, and not the path above', async () => {
    const params: unknown[] = []
    const files = document({ afterCommit: (change) => void params.push({ ...change.params }) })
    target = await startService({ resources: { '/files/{path...}': files } })
    for (const path of ['/files/a', '/files/a/b', '/files/a/b/c.txt', '/files/%C3%BC/x%20y']) {
      expect((await target.send('PUT', path, text(path))).status).toBe(201)
      expect((await target.send('GET', path)).text).toBe(path)
    }
    expect((await target.send('GET', '/files')).status).toBe(404)
    expect((await target.send('DELETE', '/files/a')).status).toBe(204)
    expect((await target.send('GET', '/files/a/b')).status).toBe(200)
    await target.service.close()
    expect(params).toEqual(['a', 'a/b', 'a/b/c.txt', 'ü/x y', 'a'].map((path) => ({ path })))
  })

  it('has one spelling for each path: no empty, dot or encoded segments, and no slash at the end', async () => {
    target = await startService({ resources: { '/files/{path...}': document() } })
    const put = async (path: string) => (await target!.send('PUT', path, text('x'))).status
    for (const path of ['/files/a//b', '/files//a', '/files/a/../b', '/files/./a', '/files/%2e%2e/a', '/files/a%2Fb']) {
      expect([path, await put(path)]).toEqual([path, 400])
    }
    for (const path of ['/files/a/%5Cb', '/files/a%00', '/files/%'])
      expect([path, await put(path)]).toEqual([path, 400])
    for (const path of ['/files/', '/files/a/', '/files/a/b/']) expect([path, await put(path)]).toEqual([path, 404])
    expect((await target.store.list('/files', { limit: 9 })).items).toEqual([])
  })

  it('comes after literals and names, also where those lead nowhere', async () => {
    const create = (name: string) => document({ afterCommit: () => void seen.push(name) })
    const seen: string[] = []
    const resources = {
      '/{path...}': create('all'),
      '/a/b': create('literal'),
      '/a/{name}': create('name'),
      '/a/{name}/c': create('below'),
      '/tasks': collection(),
      '/tasks/{path...}': create('tasks'),
    }
    target = await startService({ resources })
    const paths = ['/a', '/a/b', '/a/x', '/a/x/c', '/a/x/d', '/a/b/c/d', '/tasks/x', '/tasks/1/x', '/tasks/1']
    for (const path of paths) await target.send('PUT', path, path === '/tasks/1' ? jsonOf({}) : text('x'))
    await target.service.close()
    expect(seen).toEqual(['all', 'literal', 'name', 'below', 'all', 'all', 'tasks', 'tasks'])
    expect((await target.send('GET', '/')).status).toBe(404)
  })

  it('is judged by authorize with its own path, in listings as well', async () => {
    const authorize = (_: unknown, { params }: { readonly params: Readonly<Record<string, string>> }) =>
      !params['path']!.startsWith('secret') || ('not-found' as const)
    const resources = {
      '/files': collection({ types: ['*/*'], memberMethods: ['GET'] }),
      '/{path...}': document({
        authorize: (principal, request) => request.path !== '/files/x' && principal !== undefined,
      }),
      '/other/{path...}': document({ authorize }),
    }
    const auth = { schemes: [bearer((name: string) => ({ id: name }))], requireAuth: () => false }
    target = await startService({ resources, auth })
    await target.store.write('/files/x', { contentType: 'text/plain', body: 'x' }, { expect: 'any' })
    await target.store.write('/other/secret/x', { contentType: 'text/plain', body: 'x' }, { expect: 'any' })
    expect((await target.send('GET', '/other/secret/x')).status).toBe(404)
    expect((await target.send('GET', '/other/secret')).status).toBe(404)
    expect((await target.send('PUT', '/other/open/x', text('x'))).status).toBe(201)
    expect((await target.send('PUT', '/anything/else', text('x'))).status).toBe(403)
    // Items of a collection have a definition of their own.
    expect((await target.send('GET', '/files')).json()).toHaveLength(1)
  })

  it('decides about the entries of a collection that only it serves', async () => {
    const isAdmin = (principal: { readonly id: string } | undefined) => principal?.id === 'admin'
    const resources = {
      '/tasks': collection({ types: ['application/*'], ids: 'integer' }),
      '/tasks/{path...}': document({ authorize: (principal) => isAdmin(principal) || 'not-found' }),
    }
    const auth = { schemes: [bearer((name: string) => ({ id: name }))], requireAuth: () => false }
    target = await startService({ resources, auth })
    await target.store.write('/tasks/1', { contentType: 'application/json', body: '{"id":1}' }, { expect: 'any' })
    await target.store.write('/tasks/hidden', { contentType: 'application/json', body: '{"n":2}' }, { expect: 'any' })
    const list = async (fields = {}) =>
      (await target!.send('GET', '/tasks', { fields })).json().map(({ href }: { readonly href: string }) => href)
    expect(await list()).toEqual(['/tasks/1'])
    expect(await list({ Authorization: 'Bearer admin' })).toEqual(['/tasks/1', '/tasks/hidden'])
  })

  it('is described with a name for all segments, and left out beside a name at its place (OpenAPI)', async () => {
    const resources = { '/files/{path...}': document(), '/docs/{name}': document(), '/docs/{path...}': document() }
    target = await startService({ resources, openapi: '/openapi.json' })
    const { paths } = (await target.send('GET', '/openapi.json')).json()
    expect(Object.keys(paths)).toEqual(['/docs/{name}', '/files/{path}', '/openapi.json'])
    expect(paths['/files/{path}'].parameters).toEqual([
      {
        name: 'path',
        in: 'path',
        required: true,
        description: 'Segments, each percent-encoded, with slashes between them: `a/b%20c`.',
        schema: { type: 'string', minLength: 1 },
      },
    ])
    expect(paths['/files/{path}'].get.operationId).toBe('readFilesByPath')
    expect(paths['/files/{path}'].get.description).toContain('any number of segments')
  })

  it('is filled in by the client with its slashes', async () => {
    const resources = { '/files/{path...}': document({ types: ['application/json'] }) }
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const client = createResourceClient<typeof resources>(base)
    expectSuccess(await client.replace('/files/{path...}', { path: 'a/ü b' }, 'absent', { n: 1 }))
    const read = expectSuccess(await client.read('/files/{path...}', { path: 'a/ü b' }))
    expect(read.document.value).toEqual({ n: 1 })
    expect(read.document.url).toBe(`${base}/files/a/%C3%BC%20b`)
  })

  it.each([
    ['/a/{path...}/b', 'The pattern "/a/{path...}/b" has {path...} before its end: nothing is left for what follows.'],
    ['/a/{path...', 'has a segment that is neither plain nor a {name}'],
    ['/a/{...}', 'has a segment that is neither plain nor a {name}'],
    ['/a/x{path...}', 'has a segment that is neither plain nor a {name}'],
    ['/{path}/{path...}', 'The pattern "/{path}/{path...}" has the name {path...} twice.'],
  ])('is refused as %s', (pattern, message) => {
    expect(() => createResourceService(memoryStore(), { resources: { [pattern]: document() } })).toThrow(message)
  })

  it('is refused twice at one place, and for a collection', () => {
    const twice = { '/a/{path...}': document(), '/a/{rest...}': document() }
    expect(() => createResourceService(memoryStore(), { resources: twice })).toThrow(
      'The patterns "/a/{path...}" and "/a/{rest...}" are for the same paths.',
    )
    expect(() => createResourceService(memoryStore(), { resources: { '/a/{path...}': collection() } })).toThrow(
      '/a/{path...} cannot be a collection, which has its items below it: use document().',
    )
  })
})
