import { describe, expect, it } from 'vitest'
import { formatCursor } from '../../src/actions/listing.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'
import { idsOf, JSON_TYPE, linkOf, QUERY, serveTasks } from './tasks.ts'

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const SECRET = { ssn: { type: 'string', sensitive: true } } as const

describe('a list of a collection with query', () => {
  it('has at most as many items as pageSize.max', async () => {
    const { send } = await serveTasks({ pageSize: { default: 1, max: 2 } })
    expect(idsOf((await send('GET', '/tasks?limit=9')).text)).toEqual([1, 2])
    expect(idsOf((await send('QUERY', '/tasks', [FORM], 'status[exists]=true&limit=9')).text)).toEqual([1, 2])
  })

  it('shows nothing that was removed where no authorize says who may see it', async () => {
    const { send } = await serveTasks({ deletion: 'soft' })
    expect((await send('DELETE', '/tasks/1')).status).toBe(204)
    for (const query of ['deleted=true', 'deleted=true&status=open&count=true']) {
      const read = await send('GET', `/tasks?${query}`)
      const queried = await send('QUERY', '/tasks', [FORM], query)
      for (const { status, text } of [read, queried]) {
        expect([status, status === 200 && idsOf(text).includes(1)]).toEqual([200, false])
      }
    }
  })

  it('has no Link where it is one page', async () => {
    const { send } = await serveTasks()
    for (const target of ['/tasks', '/tasks?status=open', '/tasks?status=none']) {
      expect((await send('GET', target)).field('link')).toBeUndefined()
    }
  })

  it('goes on from its cursor whatever the order of its conditions', async () => {
    const { send } = await serveTasks()
    const first = await send('GET', '/tasks?status[ne]=late&priority[exists]=true&limit=1')
    const after = new URL(linkOf(first.field('link'), 'next')!, 'http://a').searchParams.get('after')!
    const second = await send('GET', `/tasks?priority[exists]=true&status[ne]=late&limit=1&after=${after}`)
    expect([idsOf(first.text), idsOf(second.text)]).toEqual([[1], [3]])
  })

  it('takes no cursor of a list that shows what was removed where it does not, nor the other way round', async () => {
    const { send } = await serveTasks({ deletion: 'soft', authorize: () => true })
    const walk = async (query: string): Promise<string> => {
      const link = (await send('GET', `/tasks?limit=1${query}`)).field('link')
      return new URL(linkOf(link, 'next')!, 'http://a').searchParams.get('after')!
    }
    for (const [query, other] of [
      ['', '&deleted=true'],
      ['&deleted=true', ''],
    ]) {
      const after = await walk(query!)
      expect((await send('GET', `/tasks?limit=1${query}&after=${after}`)).status).toBe(200)
      expect((await send('GET', `/tasks?limit=1${other}&after=${after}`)).status).toBe(400)
    }
  })

  it('takes no cursor that a client has made for a query by a sensitive property', async () => {
    const { send } = await serveTasks({ query: { ...QUERY, ...SECRET } })
    for (const _ of [6, 7]) await send('POST', '/tasks', [JSON_TYPE], '{"ssn":"a"}')
    const key = JSON.stringify([[{ property: 'ssn', operator: 'in' }], [], false])
    const after = formatCursor('["5"]', key)
    expect((await send('QUERY', '/tasks', [FORM], `ssn=a&limit=1&after=${after}`)).status).toBe(400)
    const first = await send('QUERY', '/tasks', [FORM], 'ssn=a&limit=1')
    const own = new URL(linkOf(first.field('link'), 'next')!, 'http://a').searchParams.get('after')!
    const second = await send('QUERY', '/tasks', [FORM], `ssn=a&limit=1&after=${own}`)
    expect([idsOf(first.text), second.status, idsOf(second.text)]).toEqual([[6], 200, [7]])
  })

  it('goes on behind 2000 refused items of a query by a sensitive property', async () => {
    const store = memoryStore()
    const { send } = await serve(store, {
      resources: {
        '/notes': collection({
          query: SECRET,
          authorize: (_, __, current) => current === undefined || Number(current.path.slice(7)) > 2100 || 'not-found',
        }),
      },
    })
    for (let id = 1; id <= 2101; id++) {
      const content = { contentType: 'application/json', body: JSON.stringify({ id, ssn: 'a' }) }
      await store.write(`/notes/${id}`, content, { expect: 'absent' })
    }
    await expect.poll(async () => (await send('QUERY', '/notes', [FORM], 'ssn=b')).status).toBe(200)
    const first = await send('QUERY', '/notes', [FORM], 'ssn=a&limit=1')
    const after = new URL(linkOf(first.field('link'), 'next')!, 'http://a').searchParams.get('after')!
    const second = await send('QUERY', '/notes', [FORM], `ssn=a&limit=1&after=${after}`)
    expect([idsOf(first.text), second.status, idsOf(second.text)]).toEqual([[], 200, [2101]])
  })
})
