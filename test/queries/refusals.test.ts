import { describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { readBlocks } from '../support/doc-blocks.ts'
import { startHost } from '../support/hosts.ts'
import { idsOf, linkOf, QUERY, serveTasks } from './tasks.ts'

const long = 'x'.repeat(257)

describe('a query that a collection does not know', () => {
  it.each([
    ['stauts=open', 'stauts', 'The parameters are: status, priority, done, dueAt, city, limit, after, sort, count.'],
    ['x=1', 'x', 'The parameter "x" is not defined for this list.'],
    ['status[like]=o', 'status[like]', 'status[prefix]'],
    ['status[]=o', 'status[]', 'The conditions on status are: status, status[ne]'],
    ['status[ne][x]=o', 'status[ne][x]', 'The parameter "status[ne][x]" is not defined'],
    ['__proto__=1', '__proto__', 'The parameter "__proto__" is not defined'],
    ['constructor=1', 'constructor', 'The parameter "constructor" is not defined'],
    ['id=1', 'id', 'The parameter "id" is not defined'],
    ['address=Oslo', 'address', 'The parameter "address" is not defined'],
    ['deleted=true', 'deleted', 'The parameter "deleted" is not defined'],
    ['priority=high', 'priority', 'a number'],
    ['priority=', 'priority', 'a number'],
    ['priority=0x10', 'priority', 'a number'],
    ['priority=NaN', 'priority', 'a number'],
    ['priority=1e999', 'priority', 'a number'],
    ['priority=9007199254740993', 'priority', '2^53'],
    ['priority=1&priority=two', 'priority', 'a number'],
    ['priority[prefix]=1', 'priority[prefix]', 'The conditions on priority are'],
    ['done=yes', 'done', 'true or false'],
    ['done[gt]=false', 'done[gt]', 'done, done[ne], done[exists]'],
    ['done[exists]=1', 'done[exists]', 'true or false'],
    ['dueAt=2026-01-01', 'dueAt', 'date-time of RFC 3339'],
    ['dueAt=2026-02-30T00:00:00Z', 'dueAt', 'date-time'],
    ['dueAt[gt]=2026-01-01T00:00:00+02:00', 'dueAt[gt]', '%2B'],
    ['dueAt[prefix]=2026', 'dueAt[prefix]', 'The conditions on dueAt'],
    [`status=${long}`, 'status', '256 bytes'],
    ['status=%00', 'status', 'U+0000'],
    ['status=%ff', 'status', 'percent-encoded UTF-8'],
    ['status=%ED%A0%80', 'status', 'percent-encoded UTF-8'],
    ['status=%', 'status', 'percent-encoded UTF-8'],
    ['status[prefix]=a&status[prefix]=b', 'status[prefix]', 'once'],
    ['priority[gt]=1&priority[gt]=2', 'priority[gt]', 'once'],
    [Array.from({ length: 9 }, (_, i) => `status=${i}`).join('&'), 'status', 'at most 8'],
    ['status=a&status[ne]=b&priority[gt]=1&priority[lt]=3&done=true', 'done', 'at most 4 conditions'],
    ['sort=', 'sort', 'status, priority, done, dueAt, city'],
    ['sort=id', 'sort', 'status, priority'],
    ['sort=--priority', 'sort', 'two different'],
    ['sort=status,status', 'sort', 'two different'],
    ['sort=status,-status', 'sort', 'two different'],
    ['sort=status,done,city', 'sort', 'one or two'],
    ['sort=status&sort=done', 'sort', 'once'],
    ['limit=0', 'limit', 'positive integer'],
    ['limit=1&limit=2', 'limit', 'once'],
    ['limit=ten', 'limit', 'positive integer'],
    ['after=x', 'after', 'Link'],
    ['after=', 'after', 'Link'],
    ['count=1', 'count', 'true or false'],
    ['count=true&count=true', 'count', 'once'],
  ])('is 400 that says what there is: %s', async (query, parameter, detail) => {
    const { send } = await serveTasks()
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(method, `/tasks?${query}`)
      expect(answer.status).toBe(400)
      if (method === 'HEAD') continue
      const { errors } = JSON.parse(answer.text)
      expect(errors.map((error: { parameter: string }) => error.parameter)).toEqual([parameter])
      expect(errors[0].detail).toContain(detail)
    }
  })

  it('is none of four conditions, and of eight values of one', async () => {
    const { send } = await serveTasks()
    const values = Array.from({ length: 8 }, (_, i) => `status=${i}`).join('&')
    for (const query of ['status=a&status[ne]=b&priority[gt]=1&priority[lt]=3', values]) {
      expect((await send('GET', `/tasks?${query}`)).status).toBe(200)
    }
  })

  it('is the document of docs/collections.md', async () => {
    const { send } = await serveTasks()
    const block = readBlocks('docs/collections.md').find(({ language }) => language === 'json')!
    expect(JSON.parse((await send('GET', '/tasks?stauts=open')).text)).toEqual(JSON.parse(block.code))
  })

  it('lists all its faults at once, and at most 20', async () => {
    const { send } = await serveTasks()
    const { errors } = JSON.parse((await send('GET', '/tasks?a=1&priority=x&sort=y&limit=0')).text)
    expect(errors.map(({ parameter }: { parameter: string }) => parameter)).toEqual(['a', 'priority', 'sort', 'limit'])
    const many = Array.from({ length: 50 }, (_, i) => `p${i}=1`).join('&')
    expect(JSON.parse((await send('GET', `/tasks?${many}`)).text).errors).toHaveLength(20)
  })

  it('is 400 for bytes outside ASCII, which HTTP/2 lets through', async () => {
    const service = createResourceService(memoryStore(), { resources: { '/tasks': collection({ query: QUERY }) } })
    const host = await startHost('http2', service)
    closeAfterTest(() => Promise.all([host.close(), service.close()]))
    expect((await host.send({ path: '/tasks?status=\u00fc' })).status).toBe(400)
    expect((await host.send({ path: '/tasks?status=%C3%BC' })).status).toBe(200)
  })

  it('knows count only where the definition has it, and deleted only where deletion is soft', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/plain': collection({ query: {} }),
        '/soft': collection({ query: QUERY, deletion: 'soft' }),
        '/old': collection(),
        '/counted': collection({ count: true }),
      },
    })
    const refused = await send('GET', '/plain?count=true')
    expect([refused.status, JSON.parse(refused.text).detail]).toEqual([
      400,
      'The parameter "count" is not defined for this list. The parameters are: limit, after.',
    ])
    expect((await send('GET', '/plain?sort=x')).status).toBe(400)
    expect((await send('GET', '/soft?deleted=true')).status).toBe(200)
    expect((await send('GET', '/soft?deleted=yes')).status).toBe(400)
    expect((await send('GET', '/old?whatever=1&sort=x&count=y')).status).toBe(200)
    expect((await send('GET', '/counted?count=true')).field('X-Total-Count')).toBe('0')
    expect((await send('GET', '/counted?whatever=1')).status).toBe(400)
  })
})

describe('a cursor', () => {
  it('belongs to its filter and order: another query gets 400', async () => {
    const { send } = await serveTasks()
    const first = await send('GET', '/tasks?status[ne]=late&sort=priority&limit=1')
    const after = new URL(linkOf(first.field('Link'), 'next')!, 'http://demo.test').searchParams.get('after')!
    expect((await send('GET', `/tasks?sort=priority&status[ne]=late&after=${after}`)).status).toBe(200)
    expect((await send('GET', `/tasks?sort=priority&status[ne]=late&count=true&limit=3&after=${after}`)).status).toBe(
      200,
    )
    for (const query of [
      '',
      'sort=priority',
      'status[ne]=late',
      'sort=-priority&status[ne]=late',
      'sort=status&status[ne]=late',
      'sort=priority&status[ne]=open',
      'sort=priority&status=late',
      'sort=priority,done&status[ne]=late',
    ]) {
      const answer = await send('GET', `/tasks?${query}&after=${after}`)
      expect([query, answer.status]).toEqual([query, 400])
      expect(JSON.parse(answer.text).errors).toMatchObject([{ parameter: 'after' }])
    }
  })

  it('survives tampering without a 5xx, and shows only what the query shows', async () => {
    const { send } = await serveTasks()
    const query = 'status=open&sort=-dueAt,priority&limit=1'
    const link = linkOf((await send('GET', `/tasks?${query}`)).field('Link'), 'next')!
    const bytes = Buffer.from(new URL(link, 'http://demo.test').searchParams.get('after')!, 'base64url')
    const cursors = Array.from({ length: bytes.length * 2 }, (_, i) => {
      const changed = Buffer.from(bytes)
      changed[i >> 1]! ^= i % 2 === 0 ? 1 : 0x80
      return changed
    })
    for (const cursor of cursors) {
      const answer = await send('GET', `/tasks?${query}&after=${cursor.toString('base64url')}`)
      expect([200, 400]).toContain(answer.status)
      if (answer.status === 200) for (const id of idsOf(answer.text)) expect([1, 3]).toContain(id)
    }
  })

  it.each([
    ['', 400],
    ['1', 400],
    ['null\0null', 400],
    ['null\0null\0', 200],
    ['null\0null\x001', 200],
    ['null\0null\x001\x002', 200],
    ['"a\0"b\0c', 200],
    ['"a\x001\0../1', 200],
    ['[]\x001\x001', 400],
    ['"a\0{}\x001', 400],
    ['"a\x001e999\x001', 400],
    ['"a\x001 2\x001', 400],
    [`"${long}\x001\x001`, 400],
  ])('with the position %j in place of its own is a place in the order, or 400', async (forged, status) => {
    const { send } = await serveTasks()
    const query = 'status=open&sort=-dueAt,priority&limit=1'
    const link = linkOf((await send('GET', `/tasks?${query}`)).field('Link'), 'next')!
    const own = Buffer.from(new URL(link, 'http://demo.test').searchParams.get('after')!, 'base64url')
    // Its first 12 bytes bind it to the query.
    const cursor = Buffer.concat([own.subarray(0, 12), Buffer.from(forged)])
    const answer = await send('GET', `/tasks?${query}&after=${cursor.toString('base64url')}`)
    expect(answer.status).toBe(status)
    if (status === 200) for (const id of idsOf(answer.text)) expect([1, 3]).toContain(id)
  })
})

describe('a query whose next page might have a target that is too long', () => {
  it('is 400 on its first page, and the detail names QUERY', async () => {
    const { send } = await serveTasks({}, { maxTargetLength: 300 })
    const values = (count: number) => Array.from({ length: count }, (_, i) => `status=${'v'.repeat(20)}${i}`).join('&')
    expect((await send('GET', `/tasks?${values(4)}`)).status).toBe(200)
    const answer = await send('GET', `/tasks?${values(8)}`)
    expect([answer.status, JSON.parse(answer.text).detail]).toEqual([400, expect.stringContaining('QUERY')])
    // An order by text has a longer cursor.
    expect((await send('GET', `/tasks?${values(4)}&sort=status`)).status).toBe(400)
    expect((await send('GET', `/tasks?${values(4)}&sort=done`)).status).toBe(200)
  })

  it('is reckoned with the path as a Link has it: percent-encoded', async () => {
    const resources = { '/{team}/tasks': collection({ query: QUERY }) }
    const { send } = await serve(memoryStore(), { resources, maxTargetLength: 300 })
    const values = Array.from({ length: 5 }, (_, i) => `status=${'v'.repeat(20)}${i}`).join('&')
    expect((await send('GET', `/${'u'.repeat(10)}/tasks?${values}`)).status).toBe(200)
    expect((await send('GET', `/${'%C3%BC'.repeat(10)}/tasks?${values}`)).status).toBe(400)
  })

  it('does not depend on what the text of an item is: a quotation mark or a control character counts once', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/tasks': collection({ query: QUERY }) } })
    for (const character of ['\u0001', '"', '\n', 'x']) {
      const body = JSON.stringify({ status: character.repeat(256) })
      expect((await send('POST', '/tasks', ['Content-Type: application/json'], body)).status).toBe(201)
    }
    const lengths: number[] = []
    const seen: unknown[] = []
    for (let target: string | undefined = '/tasks?sort=status&limit=1'; target !== undefined; ) {
      const page = await send('GET', target)
      expect(page.status).toBe(200)
      seen.push(...idsOf(page.text))
      target = linkOf(page.field('Link'), 'next')
      if (target !== undefined) lengths.push(target.length)
    }
    expect(seen).toEqual([1, 3, 2, 4])
    expect(new Set(lengths).size).toBe(1)
  })
})
