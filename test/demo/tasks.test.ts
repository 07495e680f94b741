import { afterEach, describe, expect, it } from 'vitest'
import { basicCredentials, bearerCredentials, demoSettings } from '../support/demo.ts'
import { type RecipeAnswer, type RecipeRequest, sendTo } from '../support/recipes.ts'
import { DEMOS, type Program, runProgram } from '../support/run-program.ts'

const running: Program[] = []
afterEach(async () => {
  for (const program of running.splice(0)) await program.stop('SIGKILL')
})

const signIn = (claims: Readonly<Record<string, unknown>>) => ({ Authorization: bearerCredentials(claims) })
const ann = signIn({ sub: 'ann' })
const bob = signIn({ sub: 'bob' })
const admin = { Authorization: basicCredentials }

type Send = (method: string, path: string, request?: RecipeRequest) => Promise<RecipeAnswer>

async function start(file: string): Promise<Send> {
  const { secret, user, password } = demoSettings
  const env = { PORT: '0', DEMO_SECRET: secret, DEMO_USER: user, DEMO_PASSWORD: password }
  const program = runProgram(`examples/${file}`, env)
  running.push(program)
  const [, base] = await program.waitFor(/listening on (http:\S+)/)
  return (method, path, request = {}) => sendTo(base!, method, path, request)
}

const idsOf = ({ value }: RecipeAnswer): readonly number[] => value.map(({ id }: { id: number }) => id)

const TASKS = [
  { title: 'Mend the engine', status: 'open', priority: 2, dueAt: '2026-03-01T00:00:00Z', address: { city: 'Turin' } },
  { title: 'Weave', status: 'late', priority: 1, done: false, dueAt: '2026-01-01T01:00:00+01:00' },
  { title: 'Print', status: 'closed', priority: 3, done: true },
]

describe.each(DEMOS)('/tasks of examples/%s', (file) => {
  it('shows each subject its own tasks, filtered, ordered and counted', async () => {
    const send = await start(file)
    for (const [method, path] of [
      ['GET', '/tasks'],
      ['GET', '/api/tasks/1'],
      ['POST', '/tasks'],
      ['QUERY', '/tasks'],
      ['GET', '/tasks/1/comments'],
    ] as const) {
      const { status, headers } = await send(method, path)
      expect([method, path, status]).toEqual([method, path, 401])
      expect(headers.get('www-authenticate')).toContain('Bearer')
    }
    for (const json of TASKS) expect((await send('POST', '/api/tasks', { headers: ann, json })).status).toBe(201)
    expect((await send('POST', '/tasks', { headers: bob, json: { title: 'Spin' } })).status).toBe(201)

    const list = (query: string, headers = ann) => send('GET', `/api/tasks?${query}`, { headers })
    expect(idsOf(await list(''))).toEqual([1, 2, 3])
    expect(idsOf(await list('', bob))).toEqual([4])
    expect(idsOf(await list('', admin))).toEqual([1, 2, 3, 4])
    expect(idsOf(await list('status=open&status=late&sort=priority'))).toEqual([2, 1])
    expect(idsOf(await list('dueAt[lte]=2026-01-01T00:00:00Z'))).toEqual([2])
    expect(idsOf(await list('city[prefix]=Tu'))).toEqual([1])
    expect(idsOf(await list('done[ne]=true&sort=-dueAt'))).toEqual([1, 2])
    const page = await list('count=true&limit=2')
    expect([idsOf(page), page.headers.get('x-total-count')]).toEqual([[1, 2], '3'])
    expect(page.headers.get('cache-control')).toContain('private')
    const wrong = await list('stauts=open')
    expect([wrong.status, wrong.value.errors[0].parameter]).toEqual([400, 'stauts'])

    const form = { 'Content-Type': 'application/x-www-form-urlencoded', ...ann }
    const queried = await send('QUERY', '/api/tasks', {
      headers: form,
      body: 'status=open&status=closed&sort=-priority',
    })
    expect([queried.status, idsOf(queried)]).toEqual([200, [3, 1]])
    expect(queried.headers.get('location')).toMatch(/^\/api\/tasks\?/)
  })

  it('hides the tasks of other subjects, and their comments', async () => {
    const send = await start(file)
    expect((await send('POST', '/tasks', { headers: ann, json: { title: 'Weave' } })).status).toBe(201)
    const text = { text: 'Soon.' }
    expect((await send('POST', '/tasks/1/comments', { headers: ann, json: text })).status).toBe(201)
    const { value: never } = await send('GET', '/tasks/9', { headers: bob })
    const hidden: [string, string, unknown?][] = [
      ['GET', '/tasks/1'],
      ['PUT', '/tasks/1', { title: 'Spin' }],
      ['DELETE', '/tasks/1'],
      ['GET', '/tasks/1/comments'],
      ['POST', '/tasks/1/comments', text],
      ['GET', '/tasks/1/comments/1'],
    ]
    for (const [method, path, json] of hidden) {
      const { status, value } = await send(method, path, { headers: bob, ...(json !== undefined && { json }) })
      expect([method, path, status]).toEqual([method, path, 404])
      if (path === '/tasks/1' && method === 'GET') expect(value).toEqual(never)
    }
    expect((await send('GET', '/tasks/1/comments', { headers: ann })).value).toEqual([{ id: 1, ...text }])
    expect((await send('GET', '/tasks/1/comments/1', { headers: admin })).status).toBe(200)
    expect((await send('DELETE', '/tasks/1', { headers: ann })).status).toBe(204)
    expect((await send('GET', '/tasks/1/comments/1', { headers: admin })).status).toBe(404)
  })
})

describe('/tasks of the demo', () => {
  it('gives a task its owner and its times, whatever the client says', async () => {
    const send = await start('plain-http.js')
    const created = await send('POST', '/tasks', { headers: ann, json: { title: 'Weave', createdAt: 'never' } })
    expect(created.status).toBe(201)
    const { value: first } = await send('GET', '/tasks/1', { headers: ann })
    expect(first).toMatchObject({ title: 'Weave', owner: 'ann' })
    expect(first.createdAt).toMatch(/^\d{4}-\d\d-\d\dT/)
    expect(first.updatedAt).toBe(first.createdAt)
    expect((await send('POST', '/tasks', { headers: ann, json: { title: 'Spin', owner: 'bob' } })).status).toBe(403)
    const put = await send('PUT', '/tasks/1', { headers: ann, json: { ...first, title: 'Spin', createdAt: 'never' } })
    expect(put.status).toBe(204)
    const { value: second } = await send('GET', '/tasks/1', { headers: ann })
    expect(second).toMatchObject({ title: 'Spin', owner: 'ann', createdAt: first.createdAt })
    expect(second.updatedAt > first.updatedAt).toBe(true)

    expect((await send('POST', '/tasks', { headers: admin, json: { title: 'Print', owner: 'bob' } })).status).toBe(201)
    expect((await send('GET', '/tasks', { headers: bob })).value).toMatchObject([{ title: 'Print', owner: 'bob' }])
  })

  it('shows nothing to a token without a subject', async () => {
    const send = await start('plain-http.js')
    const without = signIn({ sub: undefined, client_id: 'ann' })
    expect((await send('GET', '/tasks', { headers: without })).status).toBe(403)
    expect((await send('POST', '/tasks', { headers: without, json: { title: 'Weave' } })).status).toBe(403)
  })
})

describe('/notes and /tree of the demo', () => {
  it('filters, orders and counts notes, and takes JSON as a merge patch', async () => {
    const send = await start('plain-http.js')
    for (const rank of [2, 3, 1]) await send('POST', '/notes', { json: { title: `Note ${rank}`, rank } })
    const { value, headers } = await send('GET', '/notes?rank[gte]=2&sort=-rank&count=true')
    expect([value.map(({ rank }: { rank: number }) => rank), headers.get('x-total-count')]).toEqual([[3, 2], '2'])
    expect((await send('GET', '/notes?text=a')).status).toBe(400)
    expect((await send('PATCH', '/notes/1', { json: { rank: 9 } })).value).toEqual({ id: 1, title: 'Note 2', rank: 9 })
  })

  it('stores documents at any depth', async () => {
    const send = await start('plain-http.js')
    const headers = { 'Content-Type': 'text/plain' }
    expect((await send('PUT', '/tree/a/b%20c/d', { headers, body: 'deep' })).status).toBe(201)
    expect((await send('GET', '/tree/a/b%20c/d')).value).toBe('deep')
    expect((await send('GET', '/tree/a')).status).toBe(404)
  })
})
