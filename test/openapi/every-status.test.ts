import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openapi } from '../../src/openapi.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { listCases } from './cases.ts'
import { KINDS_OPTIONS } from './kinds.ts'
import { provoke, startWorld, type World } from './provoke.ts'

/** Work waits for ever, so that it can be cancelled. */
const operations = { queue: { enqueue: () => {} } }
const options = { fallthrough: false, limits: { bodySize: 4000 }, operations }
const worlds: Readonly<Record<string, (store: ResourceStore) => ResourceService>> = {
  'every kind of resource': (store) => createResourceService(store, { ...KINDS_OPTIONS, ...options }),
  'no definitions': (store) => {
    const { resources: _, ...rest } = KINDS_OPTIONS
    return createResourceService(store, { ...rest, ...options })
  },
}

describe.each(Object.entries(worlds))('the description of a service with %s', (_, create) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld(create)
    // The pauses between attempts, which grow, are random.
    vi.spyOn(Math, 'random').mockReturnValue(0)
  })
  afterAll(async () => {
    vi.restoreAllMocks()
    await world.host.close()
    await world.service.close()
  })

  const cases = listCases(openapi(create(memoryStore()), { info: { title: 'Test', version: '1' } }))

  it('has answers to provoke', () => {
    expect(cases.length).toBeGreaterThan(50)
  })

  it.each(cases.map((one) => [`${one.method} ${one.pattern} ${one.status} ${one.problem ?? ''}`, one] as const))(
    'names an answer that is given: %s (issue 21: no other status)',
    async (_, one) => {
      const answer = await provoke(world, one)
      expect(`${answer.status} ${answer.body.toString().slice(0, 300)}`).toMatch(new RegExp(`^${one.status} `))
      if (one.problem !== undefined) expect(answer.body.toString()).toMatch(new RegExp(`[:#]${one.problem}"`))
    },
  )
})
