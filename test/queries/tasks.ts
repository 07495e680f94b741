import { expect } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Served, serve } from '../service/serve.ts'

export const JSON_TYPE = 'Content-Type: application/json'

export const TASKS = [
  { status: 'open', priority: 3, done: false, dueAt: '2026-01-02T00:00:00+02:00', address: { city: 'Oslo' } },
  { status: 'late', priority: 1, done: true, dueAt: '2026-01-01T23:00:00Z' },
  { status: 'open', priority: 2, done: false, dueAt: '2026-01-01T23:00:00.5Z', address: { city: 'Orly' } },
  { status: 'closed', priority: 2.5 },
  { status: 'öpen', priority: null, done: true },
]

type Options = NonNullable<Parameters<typeof collection>[0]>

export const QUERY: NonNullable<Options['query']> = {
  status: 'string',
  priority: 'number',
  done: 'boolean',
  dueAt: 'date-time',
  city: { type: 'string', pointer: '/address/city' },
}

/** Serves a collection of tasks with rules for queries, and five items. */
export async function serveTasks(options: Options = {}, service: ServiceOptions = {}): Promise<Served> {
  const served = await serve(memoryStore(), {
    ...service,
    resources: { '/tasks': collection({ query: QUERY, count: true, ...options }) },
  })
  for (const task of TASKS) {
    expect((await served.send('POST', '/tasks', [JSON_TYPE], JSON.stringify(task))).status).toBe(201)
  }
  return served
}

export const idsOf = (text: string): readonly number[] => JSON.parse(text).map(({ id }: { id: number }) => id)

/** The target of a link. */
export function linkOf(field: string | undefined, relation: string): string | undefined {
  return new RegExp(`<([^>]+)>; rel="${relation}"`).exec(field ?? '')?.[1]
}
