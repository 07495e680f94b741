/**
 * Two services differ only in what a caller may not see, and the caller asks both the same. Whatever that is, the answers
 * are the same: otherwise they tell something of what is hidden.
 */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Authorize, WriteContext } from '../../src/actions/hook-types.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'

/** In its fields, `TAG` stands for the last entity tag that the caller has got. */
interface Asked {
  readonly method: string
  readonly path: string
  readonly fields: readonly string[]
  readonly body?: string | undefined
}

interface World {
  /** What the caller is shown. States are named in the order in which the caller has come to know them. */
  show(asked: Asked): Promise<{ readonly status: number }>
  /** Another user, whose states the caller may not see, stores a value, or removes what is there. */
  change(path: string, value: object | null): Promise<unknown>
}

const CALLER = 'Authorization: Bearer ada'
const OTHER = 'Authorization: Bearer bob'
const JSON_TYPE = 'Content-Type: application/json'

async function openWorld(resources: NonNullable<ServiceOptions['resources']>): Promise<World> {
  let time = Date.UTC(2026, 0, 1)
  const now = () => time
  const auth = { schemes: [bearer((token) => ({ id: token }))], requireAuth: 'writes' } as const
  const { send } = await serve(memoryStore({ now }), { resources, auth, now, cacheControl: 'public, max-age=60' })
  const tags: string[] = []
  return {
    async show({ method, path, fields, body }) {
      time += 700
      const lines = fields.map((line) => line.replace('TAG', tags.at(-1) ?? '"none"'))
      const answer = await send(method, path, lines, body)
      const tag = answer.field('ETag')
      if (tag !== undefined && tags.at(-1) !== tag) tags.push(tag)
      const named = answer.fields.map(([name, value]) => [name, name === 'etag' ? tags.indexOf(value) : value])
      return { status: answer.status, fields: named.filter(([name]) => name !== 'date'), text: answer.text }
    },
    change: (path, value) =>
      value === null ? send('DELETE', path, [OTHER]) : send('PUT', path, [OTHER, JSON_TYPE], JSON.stringify(value)),
  }
}

const FIELDS: readonly (readonly string[])[] = [
  [...Array<string>(7).fill(CALLER), 'Accept: */*'],
  ['If-None-Match: TAG', 'If-None-Match: *', 'If-Match: TAG', 'If-Match: *', 'If-Match: "other"'],
  ['Prefer: return=minimal', 'Prefer: return=representation'],
  ['Range: bytes=0-1', 'Repr-Digest: sha-256=:AA==:', 'Want-Repr-Digest: sha-256=1', 'Origin: https://app.example'],
]

/** Requests with credentials or without, with a few more fields, and with the content that the method takes. */
function requests(path: fc.Arbitrary<string>, methods: readonly string[], value: fc.Arbitrary<unknown>) {
  const [credentials, ...others] = FIELDS.map((lines) => fc.constantFrom<string[]>(...lines))
  const more = others.map((lines) => fc.oneof(lines, ...[1, 2, 3].map(() => fc.constant(undefined))))
  const fields = fc.tuple(credentials!, ...more).map((lines) => lines.filter((line) => line !== undefined))
  return fc.tuple(fc.constantFrom(...methods), path, fields, value).map(([method, target, lines, given]): Asked => {
    if (!['PUT', 'PATCH', 'POST'].includes(method)) return { method, path: target, fields: lines }
    const type = method === 'PATCH' ? 'Content-Type: application/merge-patch+json' : JSON_TYPE
    return { method, path: target, fields: [...lines, type], body: JSON.stringify(given) }
  })
}

/** Asks two worlds the same, step by step, behind what the other user does in each. */
async function compare<Step extends { readonly request: Asked }>(
  resources: NonNullable<ServiceOptions['resources']>,
  steps: fc.Arbitrary<Step>,
  change: (worlds: readonly [World, World], step: Step) => Promise<unknown>,
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 40, size: 'max' }), async (run) => {
      const worlds = [await openWorld(resources), await openWorld(resources)] as const
      for (const step of run) {
        await change(worlds, step)
        const [one, two] = [await worlds[0].show(step.request), await worlds[1].show(step.request)]
        expect(two).toEqual(one)
        expect(one.status).toBeLessThan(500)
        statuses[one.status] = (statuses[one.status] ?? 0) + 1
      }
    }),
    { seed: 1, numRuns: 10 },
  )
  return statuses
}

const note = fc.record({ title: fc.constantFrom('a', 'b'), n: fc.integer({ min: 0, max: 2 }) })

describe('what a caller is answered', () => {
  it('is the same whether or not others have resources that the caller may not see', async () => {
    const isOwn: Authorize = (principal, _, current) =>
      current === undefined || current.path.includes(`/${principal?.id}-`) || 'not-found'
    const options = { ids: 'string', authorize: isOwn, query: { title: 'string', n: 'number' }, count: true } as const
    const pageSize = { default: 2, max: 3 }
    const resources = {
      '/notes': collection({ ...options, pageSize }),
      '/soft': collection({ ...options, pageSize, deletion: 'soft' }),
      '/docs/{name}': document({ authorize: isOwn }),
    }
    const collections = fc.constantFrom('/notes', '/soft', '/docs')
    const names = (user: string) =>
      fc.tuple(collections, fc.constantFrom('1', '2', '3')).map(([at, n]) => `${at}/${user}-${n}`)
    const filters = ['', 'title=a', 'n[gt]=0', 'title=b&n=1', 'sort=-n', 'count=true', 'limit=1', 'deleted=true']
    const lists = fc.tuple(collections, fc.constantFrom(...filters)).map(([at, filter]) => `${at}?${filter}`)
    const request = fc.oneof(
      requests(fc.oneof(lists, lists, names('bob'), names('ada')), ['GET', 'GET', 'HEAD', 'OPTIONS'], note),
      requests(names('bob'), ['PATCH', 'DELETE'], note),
      requests(names('ada'), ['PUT', 'PUT', 'PATCH', 'DELETE'], note),
    )
    const hidden = fc.array(fc.record({ path: names('bob'), value: fc.option(note) }), { maxLength: 2 })
    const statuses = await compare(resources, fc.record({ hidden, request }), async ([, world], step) => {
      for (const { path, value } of step.hidden) await world.change(path, value)
    })
    for (const status of [200, 201, 204, 304, 401, 404, 412]) expect(statuses[status]).toBeGreaterThan(0)
  })

  it('is the same whatever others have stored where the caller may write and not read', async () => {
    const mayRead: Authorize = (principal, { method }) => principal?.id === 'bob' || method !== 'GET'
    const keepOwner = (value: JsonObject, { current }: WriteContext) => ({
      ...value,
      owner: (current?.value as JsonObject | undefined)?.['owner'] ?? value['owner'] ?? 'nobody',
    })
    const merge = (value: JsonObject, { current }: WriteContext) => ({ ...(current?.value as JsonObject), ...value })
    const options = { ids: 'string', authorize: mayRead } as const
    const resources = {
      '/kept': collection({ ...options, beforeWrite: keepOwner }),
      '/merged': collection({ ...options, beforeWrite: merge }),
      '/files': collection({ ...options, files: { scan: {} } }),
      '/told': collection({ ...options, deleteResponse: 'representation', putResponse: 'representation' }),
      '/soft': collection({ ...options, deletion: 'soft', query: { n: 'number' } }),
      '/docs/{name}': document({ authorize: mayRead }),
      '/single': singleton({ authorize: mayRead, beforeWrite: merge, putResponse: 'none' }),
    }
    const path = fc.constantFrom('/kept/a', '/merged/a', '/files/a', '/told/a', '/soft/a', '/docs/a', '/single')
    // With its id, as it is stored: validators are sent where what was sent is stored unchanged.
    const secrets = [
      { id: 'a', owner: 'carl', n: 1 },
      { id: 'a', owner: 'dora', n: 2.5, more: ['a longer secret'] },
    ] as const
    const value = fc.constantFrom({}, { id: 'a' }, { id: 'a', owner: 'dora' }, ...secrets)
    const request = requests(path, ['GET', ...Array<string>(7).fill('PUT'), 'PATCH', 'DELETE'], value)
    const hidden = fc.option(fc.record({ path, isRemoved: fc.boolean() }))
    const statuses = await compare(resources, fc.record({ hidden, request }), async (worlds, step) => {
      if (step.hidden === null) return
      const { path, isRemoved } = step.hidden
      for (const [index, world] of worlds.entries()) await world.change(path, isRemoved ? null : secrets[index]!)
    })
    for (const status of [200, 201, 204, 401, 403]) expect(statuses[status]).toBeGreaterThan(0)
  })
})
