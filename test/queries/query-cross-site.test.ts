import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { CorsOptions } from '../../src/handlers/preflight.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Served, serve } from '../service/serve.ts'
import type { Answer } from '../support/answer.ts'
import { JSON_TYPE, QUERY } from './tasks.ts'

const FRIEND = 'https://app.test'
const EVIL = 'https://evil.test'
const FORM = 'Content-Type: application/x-www-form-urlencoded'
const COOKIE = 'Cookie: session=ada'
const BASIC = `Authorization: Basic ${btoa('ada:ada')}`

const auth: NonNullable<ServiceOptions['auth']> = {
  schemes: [basic({ realm: 'r', accounts: { ada: 'ada' } })],
  principal: ({ headers }) => (headers.cookie === 'session=ada' ? { id: 'ada' } : undefined),
  requireAuth: 'all',
}

/** Serves the tasks of ada, found by her cookie or her password. */
async function serveTasks(cors?: CorsOptions, options: ServiceOptions = {}): Promise<Served> {
  const served = await serve(memoryStore(), {
    auth,
    ...(cors && { cors }),
    ...options,
    resources: { '/tasks': collection({ query: QUERY, count: true }) },
  })
  expect((await served.send('POST', '/tasks', [JSON_TYPE, COOKIE], '{"status":"open"}')).status).toBe(201)
  return served
}

const from = (origin: string, site: string) => [`Origin: ${origin}`, `Sec-Fetch-Site: ${site}`]

/** What lets a script of another origin read a response. */
const grantOf = (answer: Answer) => [
  answer.field('Access-Control-Allow-Origin'),
  answer.field('Access-Control-Allow-Credentials'),
]
const NO_GRANT = [undefined, undefined]

const POLICIES: readonly [string, CorsOptions | undefined, friend: readonly (string | undefined)[]][] = [
  ['without cors', undefined, NO_GRANT],
  ['with an origin that cors names', { origins: [FRIEND] }, [FRIEND, undefined]],
  ['with an origin that cors names with credentials', { origins: [FRIEND], credentials: true }, [FRIEND, 'true']],
]

describe.each(POLICIES)('QUERY of another site, %s', (_, cors, friend) => {
  it.each([
    ['a cookie', COOKIE],
    ['a password', BASIC],
  ])(
    'is answered with %s, since it is safe, and only an origin that cors names reads the response (RFC 10008 §2)',
    async (_, credentials) => {
      const { send } = await serveTasks(cors)
      for (const [origin, site, grant] of [
        [EVIL, 'cross-site', NO_GRANT],
        [EVIL, 'same-site', NO_GRANT],
        ['null', 'cross-site', NO_GRANT],
        [FRIEND, 'cross-site', friend],
      ] as const) {
        const fields = [FORM, credentials, ...from(origin, site)]
        const queried = await send('QUERY', '/tasks', fields, 'status=open')
        expect([queried.status, queried.text, grantOf(queried)]).toEqual([200, '[{"id":1,"status":"open"}]', grant])
        // What is cached is neither for another origin nor for another user.
        expect(queried.field('Cache-Control')).toBe('no-store')
        expect(queried.field('Vary')).toBe(
          cors === undefined ? 'Authorization, Cookie' : 'Origin, Authorization, Cookie',
        )
        // The same fields on a method that is not safe.
        const posted = await send('POST', '/tasks', fields, 'status=late')
        const isAllowed = cors !== undefined && origin === FRIEND
        expect([posted.status, posted.text.includes('cross-site')]).toEqual(isAllowed ? [201, false] : [403, true])
      }
    },
  )

  it('needs the credentials that the collection requires, of whatever site it comes', async () => {
    const { send } = await serveTasks(cors)
    for (const fields of [[], from(EVIL, 'cross-site'), from(FRIEND, 'cross-site')]) {
      expect((await send('QUERY', '/tasks', [FORM, ...fields], '')).status).toBe(401)
      expect((await send('QUERY', '/tasks', [FORM, 'Cookie: session=eve', ...fields], '')).status).toBe(401)
    }
  })

  it('takes no content type that a form sends, but the one of queries, and changes nothing', async () => {
    const { send } = await serveTasks(cors)
    for (const type of ['text/plain', 'multipart/form-data; boundary=b']) {
      const fields = [`Content-Type: ${type}`, COOKIE, ...from(EVIL, 'cross-site')]
      expect((await send('QUERY', '/tasks', fields, 'status=open')).status).toBe(415)
    }
    expect((await send('QUERY', '/tasks', [COOKIE, ...from(EVIL, 'cross-site')], 'status=open')).status).toBe(400)
    expect((await send('GET', '/tasks', [COOKIE])).text).toBe('[{"id":1,"status":"open"}]')
  })

  it('is allowed to a script by the preflight alone: the method is not one that browsers send without (Fetch, "CORS-safelisted method")', async () => {
    const { send } = await serveTasks(cors)
    const ask = (origin: string) =>
      send('OPTIONS', '/tasks', [...from(origin, 'cross-site'), 'Access-Control-Request-Method: QUERY'])
    for (const [origin, grant] of [
      [FRIEND, friend],
      [EVIL, NO_GRANT],
      ['null', NO_GRANT],
    ] as const) {
      const preflight = await ask(origin)
      const methods = grant === NO_GRANT ? undefined : 'GET, HEAD, QUERY, POST'
      expect([preflight.status, preflight.field('Access-Control-Allow-Methods'), grantOf(preflight)]).toEqual([
        204,
        methods,
        grant,
      ])
    }
  })
})

describe('QUERY of another site', () => {
  it('is 403 where cors refuses the requests of other origins (rejectOrigin)', async () => {
    const { port, send } = await serveTasks({ origins: [FRIEND], rejectOrigin: true })
    const statusOf = async (fields: readonly string[]) =>
      (await send('QUERY', '/tasks', [FORM, COOKIE, ...fields], '')).status
    expect(await statusOf(from(EVIL, 'cross-site'))).toBe(403)
    for (const path of ['/tasks', '/tasks/1']) {
      const read = await send('GET', path, [COOKIE, ...from(EVIL, 'cross-site')])
      expect([read.status, read.text.includes('cross-site')]).toEqual([403, true])
    }
    expect(await statusOf(from(FRIEND, 'cross-site'))).toBe(200)
    const own = `127.0.0.1:${port}`
    expect(await statusOf([`Host: ${own}`, ...from(`http://${own}`, 'same-origin')])).toBe(200)
  })

  it('is read by every origin with "*", which takes no credentials', async () => {
    const { send } = await serveTasks({ origins: '*' }, { auth: { ...auth, requireAuth: 'writes' } })
    const answer = await send('QUERY', '/tasks', [FORM, ...from(EVIL, 'cross-site')], 'status=open')
    expect([answer.status, grantOf(answer)]).toEqual([200, ['*', undefined]])
  })

  it.each([
    ['a cookie', COOKIE],
    ['a password', BASIC],
  ])('does not let a form of any site change something with "*" and %s (threat 112)', async (_, credentials) => {
    const { send } = await serveTasks({ origins: '*' })
    for (const origin of [EVIL, 'null']) {
      const posted = await send('POST', '/tasks', [FORM, credentials, ...from(origin, 'cross-site')], 'status=late')
      expect([posted.status, posted.text.includes('cross-site'), grantOf(posted)]).toEqual([
        403,
        true,
        ['*', undefined],
      ])
    }
    const untyped = await send('POST', '/tasks', [credentials, ...from(EVIL, 'cross-site')], '{"status":"late"}')
    expect(untyped.status).toBe(403)
    const listed = await send('GET', '/tasks', [credentials, ...from(EVIL, 'cross-site')])
    expect([listed.status, listed.text]).toEqual([200, '[{"id":1,"status":"open"}]'])
  })

  it('lets a script of any site change something with "*" where the browser has asked before, since it attaches nothing then', async () => {
    const { send } = await serveTasks({ origins: '*' })
    const fields = [JSON_TYPE, BASIC, ...from(EVIL, 'cross-site')]
    const posted = await send('POST', '/tasks', fields, '{"status":"late"}')
    const put = await send('PUT', '/tasks/1', fields, '{"status":"late"}')
    const removed = await send('DELETE', '/tasks/1', [BASIC, ...from(EVIL, 'cross-site')])
    expect([posted.status, put.status, removed.status]).toEqual([201, 204, 204])
  })

  it('is not named by X-HTTP-Method-Override, which would send it without a preflight', async () => {
    const { send } = await serveTasks(undefined, { methodOverride: true })
    const fields = [FORM, COOKIE, 'X-HTTP-Method-Override: QUERY']
    expect((await send('POST', '/tasks', fields, 'status=open')).status).toBe(400)
    expect((await send('POST', '/tasks', [...fields, ...from(EVIL, 'cross-site')], 'status=open')).status).toBe(400)
    // On QUERY the field has no effect: the method stays safe.
    const named = [FORM, COOKIE, 'X-HTTP-Method-Override: DELETE', ...from(EVIL, 'cross-site')]
    expect((await send('QUERY', '/tasks', named, 'status=open')).text).toBe('[{"id":1,"status":"open"}]')
  })
})
