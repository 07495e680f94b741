// Compiled, not run: hooks know what the schema gives.
import { z } from 'zod'
import { collection, document, json, singleton } from '../../src/index.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function expectType<Expected>(): <Actual>(value: Actual, same: Equal<Expected, Actual>) => void

const User = z.object({ name: z.string(), role: z.enum(['admin', 'member']).optional() })
type User = z.infer<typeof User>

collection({
  schema: User,
  conflict(proposed, current) {
    expectType<User | undefined>()(proposed.value, true)
    expectType<User | undefined>()(current?.value, true)
    return undefined
  },
  authorize: (principal, _request, current) => current?.value?.name === principal?.id,
})

collection({
  schema: User,
  create: 'accepted',
  process: (member) => expectType<User>()(member.value, true),
})

const Stamped = z.object({ name: z.string(), createdAt: z.string().optional() })
type Stamped = z.infer<typeof Stamped>

const stamped = collection({
  schema: Stamped,
  beforeWrite(value, { current, now }) {
    expectType<Stamped>()(value, true)
    expectType<Stamped | undefined>()(current?.value, true)
    return { ...value, createdAt: current?.value.createdAt ?? now.toISOString() }
  },
  outbox(change) {
    expectType<Stamped | undefined>()(change.after?.value, true)
    return [{ path: `/audit/${change.eventId}`, content: json(change) }]
  },
  afterCommit: async ({ before }) => expectType<Stamped | undefined>()(before?.value, true),
})
// What a hook returns has no part in what the definition says of its values.
expectType<Stamped | undefined>()(undefined as NonNullable<(typeof stamped)['~types']>['output'] | undefined, true)
// @ts-expect-error: nothing to store
collection({ schema: Stamped, beforeWrite: () => {} })
collection({ beforeWrite: async (value) => ({ ...value, a: 1 }) })
// @ts-expect-error: a promise comes too late
collection({ outbox: async () => [] })

document({ schema: User, conflict: (proposed) => proposed.value?.name })
singleton({ schema: User, conflict: (proposed) => proposed.value?.name })

// @ts-expect-error: an option that does not exist
collection({ scheme: User })
// @ts-expect-error: a singleton has no DELETE
singleton({ deletion: 'soft' })
// @ts-expect-error: a singleton has no DELETE
singleton({ deleteResponse: 'tag' })
// @ts-expect-error: a singleton has no DELETE
singleton({ retention: 0 })
// @ts-expect-error: a singleton has no POST
singleton({ postCacheControl: 'no-cache' })
// @ts-expect-error: a document has no POST
document({ postCacheControl: 'no-cache' })
// @ts-expect-error: the schema has no such member
document({ schema: User, conflict: (proposed) => proposed.value?.email })

collection({
  query: { status: 'string', city: { type: 'string', pointer: '/address/city', sensitive: true } },
  count: true,
})
collection({ scope: ({ principal }) => ({ owner: principal?.id, team: 7, isGuest: false }) })
collection({ scope: async ({ principal }) => (principal?.claims?.['admin'] === true ? undefined : { owner: 'x' }) })
collection({ scope: { properties: ['owner'], values: ({ principal }) => ({ owner: principal?.id }) } })
// @ts-expect-error: a type that does not exist
collection({ query: { status: 'text' } })
// @ts-expect-error: the principal may be unknown
collection({ scope: ({ principal }) => ({ owner: principal.id }) })
// @ts-expect-error: the value of a scope is text, a number or a boolean
collection({ scope: () => ({ owner: ['ada'] }) })
// @ts-expect-error: only collections have queries
document({ query: { status: 'string' } })
