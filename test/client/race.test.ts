import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createResourceClient, expectSuccess, type Fetch, type ResourceDocument } from '../../src/client.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { start } from './servers.ts'

/** `npm run soak` makes 10 000. */
const EDITS = Number(process.env['RACING_EDITS'] ?? 300)

const Board = z.object({
  count: z.number().int(),
  /** The number of the last edit of each client. */
  last: z.object({ ada: z.number().int(), grace: z.number().int() }),
  /** For each of its places, the number of the last edit that changed it. */
  entries: z.record(z.string(), z.number().int()),
})
const resources = { '/board': singleton({ schema: Board }) } as const
type Name = 'ada' | 'grace'
type Board = z.infer<typeof Board>

const platformFetch: Fetch = globalThis.fetch

/** Holds a request until that of the other client is there too, for 5 ms at most: both then meet one state. */
function createMeeting(): () => Promise<void> {
  let waiting: (() => void) | undefined
  return () =>
    new Promise((resolve) => {
      if (waiting !== undefined) {
        waiting()
        return resolve()
      }
      const leave = (): void => {
        clearTimeout(timer)
        waiting = undefined
        resolve()
      }
      const timer = setTimeout(leave, 5)
      waiting = leave
    })
}

describe('two clients that edit one document at the same time', () => {
  it(`lose none of ${EDITS} typed edits, by functions and by values (issue 21, figures)`, async () => {
    const base = await start(createResourceService(memoryStore(), { resources }))
    const statuses = new Map<string, number>()
    const meet = createMeeting()
    const open = () =>
      createResourceClient<typeof resources>(base, {
        // As often as it takes: an edit that is given up would not be lost, but not made either.
        maxAttempts: 1000,
        async fetch(url, options) {
          if (options.method === 'PATCH') await meet()
          const response = await platformFetch(url, options)
          const key = `${options.method} ${response.status}`
          statuses.set(key, (statuses.get(key) ?? 0) + 1)
          return response
        },
      })
    const empty: Board = { count: 0, last: { ada: 0, grace: 0 }, entries: {} }
    await open().replace('/board', 'absent', empty)

    async function run(name: Name) {
      const client = open()
      const made = { count: 0, last: 0, entries: new Map<string, number>() }
      let known: ResourceDocument<Board, '/board'> = expectSuccess(await client.read('/board')).document
      for (let edit = 1; edit <= EDITS / 2; edit++) {
        const place = `${name}-${edit % 50}`
        const kind = Math.floor(Math.random() * 3)
        const result =
          kind === 0
            ? await client.edit('/board', (board) => ({ ...board, count: board.count + 1 }))
            : kind === 1
              ? await client.edit(known, { ...known.value, last: { ...known.value.last, [name]: edit } })
              : await client.edit(known, {
                  ...known.value,
                  entries: { ...known.value.entries, [place]: edit },
                })
        known = expectSuccess(result).document
        if (kind === 0) made.count++
        else if (kind === 1) made.last = edit
        else made.entries.set(place, edit)
      }
      return made
    }

    const [ada, grace] = await Promise.all([run('ada'), run('grace')])
    const { value } = expectSuccess(await open().read('/board')).document
    expect(value.count).toBe(ada.count + grace.count)
    expect(value.last).toEqual({ ada: ada.last, grace: grace.last })
    expect(value.entries).toEqual(Object.fromEntries([...ada.entries, ...grace.entries]))
    expect(statuses.get('PATCH 200')).toBe(EDITS)
    // They did race.
    expect(statuses.get('PATCH 412')).toBeGreaterThan(EDITS / 100)
    if (EDITS > 1000) console.log(`${EDITS} edits, of which ${statuses.get('PATCH 412')} attempts met 412; none lost`)
  }, 600_000)
})
