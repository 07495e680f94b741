import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { DATE, EARLIER, LATER, OLD, TAG } from '../support/fixture-store.ts'
import { serve, serveFixtures } from './serve.ts'

/** The same instant in the two obsolete forms (RFC 9110 §5.6.7). */
const RFC850 = 'Monday, 06-Jul-20 10:00:00 GMT'
const ASCTIME = 'Mon Jul  6 10:00:00 2020'

type Row = readonly [fields: readonly string[], status: number]
const name = (fields: readonly string[]): string => (fields.length === 0 ? 'no condition' : fields.join(' + '))
const titled = (rows: readonly Row[]) => rows.map(([fields, status]) => [name(fields), status, fields] as const)

const reads: Readonly<Record<string, readonly Row[]>> = {
  'GET a.bin, which has a strong tag and a date': [
    [[], 200],
    // §13.1.2, rows H8, H12, H119 to H121
    [[`If-None-Match: ${TAG}`], 304],
    [[`If-None-Match: W/${TAG}`], 304],
    [['If-None-Match: *'], 304],
    [['If-None-Match: "nope"'], 200],
    [['If-None-Match: "nope"', `If-None-Match: ${TAG}`], 304],
    [[`If-None-Match: , ,${TAG}`], 304],
    [[`If-None-Match: "x" ,\t${TAG} ,`], 304],
    [[`iF-nOnE-mAtCh: ${TAG}`], 304],
    [['If-None-Match: e'], 200],
    [['If-None-Match: "E"'], 200],
    [[`If-None-Match: w/${TAG}`], 200],
    [['If-None-Match: "e'], 200],
    [[`If-None-Match: *, ${TAG}`], 200],
    [[`If-None-Match: "x" ${TAG}`], 200],
    // §13.1.3, rows H15 to H17, H125 to H127
    [[`If-Modified-Since: ${DATE}`], 304],
    [[`If-Modified-Since: ${RFC850}`], 304],
    [[`If-Modified-Since: ${ASCTIME}`], 304],
    [[`If-Modified-Since: ${LATER}`], 304],
    [['If-Modified-Since: Wed, 06 Jul 2199 10:00:00 GMT'], 304],
    [[`If-Modified-Since: ${EARLIER}`], 200],
    [['If-Modified-Since: 2020-07-06T10:00:00Z'], 200],
    [['If-Modified-Since: 2030'], 200],
    [['If-Modified-Since: Mon, 06 Jul 2020 10:00:00 +0000'], 200],
    [['If-Modified-Since: Mon, 06 Jul 2020 10:00:00'], 200],
    [[`If-Modified-Since: ${DATE}`, `If-Modified-Since: ${DATE}`], 200],
    [['If-None-Match: "nope"', `If-Modified-Since: ${DATE}`], 200],
    [[`If-None-Match: ${TAG}`, `If-Modified-Since: ${OLD}`], 304],
    // §13.1.1, rows H104 to H111
    [[`If-Match: ${TAG}`], 200],
    [['If-Match: *'], 200],
    [[`If-Match: "a", ${TAG}`], 200],
    [['If-Match: "a"', `If-Match: ${TAG}`], 200],
    [['If-Match: "x"'], 412],
    [['If-Match: "a", "b"'], 412],
    [[`If-Match: W/${TAG}`], 412],
    [['If-Match: e'], 400],
    [[`If-Match: *, ${TAG}`], 400],
    // §13.1.4, rows H112 to H115
    [[`If-Unmodified-Since: ${DATE}`], 200],
    [[`If-Unmodified-Since: ${LATER}`], 200],
    [[`If-Unmodified-Since: ${EARLIER}`], 412],
    [[`If-Unmodified-Since: ${OLD}`], 412],
    [['If-Unmodified-Since: 2099-01-01T00:00:00Z'], 200],
    [['If-Unmodified-Since: banana'], 200],
    [[`If-Unmodified-Since: ${OLD}`, `If-Unmodified-Since: ${OLD}`], 200],
    [[`If-Match: ${TAG}`, `If-Unmodified-Since: ${OLD}`], 200],
    // §13.2.2, rows H128 to H131
    [[`If-Match: ${TAG}`, `If-None-Match: ${TAG}`], 304],
    [['If-Match: "x"', `If-None-Match: ${TAG}`], 412],
    [[`If-Unmodified-Since: ${DATE}`, `If-None-Match: ${TAG}`], 304],
    [[`If-Unmodified-Since: ${DATE}`, `If-Modified-Since: ${DATE}`], 304],
    [[`If-None-Match: ${TAG}`, 'Range: bytes=0-4'], 304],
    [[`If-None-Match: ${TAG}`, 'Range: bytes=99-'], 304],
    [['If-Match: "x"', 'Range: bytes=0-4'], 412],
    [['If-Match: "x"', 'Range: bytes=99-'], 412],
    // A reload still gets a 304 from the origin (RFC 9111 §5.2.1.4, row C9).
    [[`If-None-Match: ${TAG}`, 'Cache-Control: no-cache', 'Pragma: no-cache'], 304],
  ],
  'GET w.bin, which has a weak tag': [
    [['If-None-Match: W/"w"'], 304],
    [['If-None-Match: "w"'], 304],
    [['If-Match: W/"w"'], 412],
    [['If-Match: "w"'], 412],
    [['If-Match: *'], 200],
  ],
  'GET n.bin, which has neither tag nor date (rows H107, H116, H123, H127)': [
    [['If-None-Match: "x"'], 200],
    [['If-None-Match: ""'], 200],
    [['If-None-Match: *'], 304],
    [['If-Match: "x"'], 412],
    [['If-Match: ""'], 412],
    [['If-Match: *'], 200],
    [[`If-Modified-Since: ${LATER}`], 200],
    [[`If-Unmodified-Since: ${OLD}`], 200],
  ],
  'GET d.bin, which has a date only': [
    [[`If-Modified-Since: ${DATE}`], 304],
    [[`If-Modified-Since: ${EARLIER}`], 200],
    [['If-None-Match: "x"', `If-Modified-Since: ${DATE}`], 200],
  ],
  'GET comma.bin, whose tag holds a comma and a semicolon (row H43)': [
    [['If-None-Match: "x,y", "a,b;c"'], 304],
    [['If-None-Match: "a'], 200],
    [['If-None-Match: "b;c"'], 200],
    [['If-Match: "a,b;c"'], 200],
  ],
  'GET part.bin, which changed within a second (row H117)': [
    [[`If-Unmodified-Since: ${DATE}`], 200],
    [[`If-Modified-Since: ${DATE}`], 304],
  ],
  'GET twice.bin, which changed twice in its second (row H45)': [
    [[`If-Modified-Since: ${DATE}`], 200],
    [[`If-Modified-Since: ${LATER}`], 304],
    [[`If-Unmodified-Since: ${DATE}`], 412],
    [[`If-Unmodified-Since: ${LATER}`], 200],
  ],
}

describe.each(Object.entries(reads))('%s', (title, rows) => {
  const target = `/docs/${title.slice(4).split(',')[0]}`

  it.each(titled(rows))('answers %s with %i (RFC 9110 §13)', async (_, status, fields) => {
    const { send, store } = await serveFixtures()
    const answer = await send('GET', target, fields)
    expect(answer.status).toBe(status)
    expect(answer.text).toBe(status === 200 ? 'abcdefghijklmnopqrstuvwxyz' : status === 400 ? answer.text : '')
    const head = await send('HEAD', target, fields)
    expect(head.status).toBe(status)
    expect(head.fields.filter(([key]) => key !== 'date')).toEqual(answer.fields.filter(([key]) => key !== 'date'))
    expect(store.writes).toEqual([])
  })
})

const text = 'Content-Type: text/plain'
const writes: readonly (readonly [name: string, rows: readonly Row[]])[] = [
  [
    'a.bin',
    [
      [[], 204],
      [[`If-Match: ${TAG}`], 204],
      [['If-Match: *'], 204],
      [[`If-Match: "a", ${TAG}`], 204],
      [['If-Match: "a","b"'], 412],
      [[`If-Match: W/${TAG}`], 412],
      [['If-Match: ,'], 412],
      [['If-Match: abc'], 400],
      [['If-Match: "a'], 400],
      [['If-Match: *,"a"'], 400],
      [['If-None-Match: *'], 412],
      [[`If-None-Match: ${TAG}`], 412],
      [[`If-None-Match: W/${TAG}`], 412],
      [['If-None-Match: "nope"'], 204],
      [['If-None-Match: nope'], 400],
      [[`If-Match: ${TAG}`, `If-None-Match: ${TAG}`], 412],
      [[`If-Unmodified-Since: ${DATE}`], 204],
      [[`If-Unmodified-Since: ${OLD}`], 412],
      [[`If-Match: ${TAG}`, `If-Unmodified-Since: ${OLD}`], 204],
      [['If-Unmodified-Since: banana'], 204],
      // Row H124: only for GET and HEAD.
      [[`If-Modified-Since: ${DATE}`], 204],
      [[`If-Modified-Since: ${LATER}`], 204],
    ],
  ],
  [
    'w.bin',
    [
      [['If-Match: W/"w"'], 412],
      [['If-None-Match: "w"'], 412],
      [['If-Match: *'], 204],
    ],
  ],
  [
    'n.bin',
    [
      [['If-Match: "x"'], 412],
      [['If-Match: *'], 204],
      [[`If-Unmodified-Since: ${OLD}`], 204],
    ],
  ],
]

describe.each(writes)('changes of %s under a condition', (file, rows) => {
  it.each(titled(rows))(
    'PUT answers %s with %i, and a refusal changes nothing (row H109)',
    async (_, status, fields) => {
      const { send, store } = await serveFixtures()
      const answer = await send('PUT', `/docs/${file}`, [text, ...fields], 'new')
      expect(answer.status).toBe(status)
      expect(store.writes).toEqual(status === 204 ? [`/docs/${file}`] : [])
    },
  )

  it.each(titled(rows))('DELETE answers %s with %i (rows H105, H122)', async (_, status, fields) => {
    const { send, store } = await serveFixtures()
    expect((await send('DELETE', `/docs/${file}`, fields)).status).toBe(status)
    expect(store.writes).toEqual(status === 204 ? [`/docs/${file}`] : [])
  })
})

describe('PATCH under a condition', () => {
  const patch = (fields: readonly string[]) => ['Content-Type: application/merge-patch+json', ...fields]

  it.each(
    titled([
      [['If-Match: "u"'], 200],
      [['If-Match: "x"'], 412],
      [['If-Match: W/"u"'], 412],
      [['If-Match: u'], 400],
      [['If-None-Match: "u"'], 412],
      [[`If-Unmodified-Since: ${DATE}`], 200],
      [[`If-Unmodified-Since: ${OLD}`], 412],
      [[`If-Modified-Since: ${DATE}`], 200],
    ]),
  )('answers %s with %i (RFC 5789 §2.2, row H118)', async (_, status, fields) => {
    const { send, store } = await serveFixtures()
    const answer = await send('PATCH', '/users/1', patch(fields), '{"role":"admin"}')
    expect(answer.status).toBe(status)
    if (status === 412) expect(answer.text).toBe('')
    expect(store.writes).toEqual(status === 200 ? ['/users/1'] : [])
  })
})

describe('conditions on a target that is missing', () => {
  it.each(['GET', 'HEAD', 'DELETE', 'PATCH'])('%s stays 404, or 410 (RFC 9110 §13.2.1, row H101)', async (method) => {
    const { send, store } = await serveFixtures()
    const fields = method === 'PATCH' ? ['Content-Type: application/merge-patch+json'] : []
    for (const condition of ['If-Match: "x"', 'If-Match: *', 'If-None-Match: *', `If-Unmodified-Since: ${OLD}`]) {
      expect((await send(method, '/docs/missing', [...fields, condition])).status).toBe(404)
      expect((await send(method, '/docs/gone', [...fields, condition])).status).toBe(410)
    }
    expect(store.writes).toEqual([])
  })

  it.each([
    ['If-Match: *', 412],
    ['If-Match: "abc"', 412],
    ['If-None-Match: *', 201],
    ['If-None-Match: "abc"', 201],
    [`If-Unmodified-Since: ${OLD}`, 201],
  ])('PUT with %s answers %i (rows H104, H108, H119)', async (condition, status) => {
    for (const target of ['/docs/missing', '/docs/gone']) {
      const { send, store } = await serveFixtures()
      expect((await send('PUT', target, [text, condition], 'new')).status).toBe(status)
      expect(store.writes).toEqual(status === 201 ? [target] : [])
    }
  })
})

describe('conditions and the other decisions', () => {
  it('ignores them for OPTIONS (RFC 9110 §13.2.1, row H103)', async () => {
    const { send } = await serveFixtures()
    expect((await send('OPTIONS', '/docs/a.bin', ['If-Match: "x"', 'If-None-Match: *'])).status).toBe(204)
  })

  it.each([
    ['405', 'POST', '/docs/a.bin', [text], 405],
    ['415', 'PUT', '/users/1', ['Content-Type: image/png'], 415],
    ['415 for a coding', 'PUT', '/docs/a.bin', [text, 'Content-Encoding: foo'], 415],
    ['406', 'GET', '/users/1', ['Accept: image/png'], 406],
    ['413', 'PUT', '/users/1', ['Content-Type: application/json', 'Content-Length: 1000000000000'], 413],
    ['400 for Content-Range', 'PUT', '/docs/a.bin', [text, 'Content-Range: bytes 0-1/26'], 400],
  ])('comes after %s (row H100)', async (_, method, target, fields, status) => {
    const { send, store } = await serveFixtures()
    const answer = await send(method, target, [...fields, 'If-Match: "x"'], method === 'GET' ? undefined : 'x')
    expect(answer.status).toBe(status)
    expect(store.reads).toEqual([])
  })

  it('comes before the content is looked at (RFC 9110 §13.2.1, row H102)', async () => {
    const { send } = await serveFixtures()
    const answer = await send('PUT', '/users/1', ['Content-Type: application/json', 'If-Match: "x"'], '{"broken":')
    expect(answer.status).toBe(412)
  })

  it('judges a POST by the page of its collection, which has a tag (RFC 9110 §13.2.1, row H133)', async () => {
    const { send, store } = await serveFixtures()
    const tag = (await send('GET', '/users')).field('ETag')
    const json = 'Content-Type: application/json'
    expect((await send('POST', '/users', [json, 'If-Match: "x"'], '{}')).status).toBe(412)
    expect(store.writes).toEqual([])
    expect((await send('POST', '/users', [json, `If-Match: ${tag}`], '{}')).status).toBe(201)
    expect((await send('POST', '/users', [json, `If-Match: ${tag}`], '{}')).status).toBe(412)
  })

  it('judges a POST without definitions by what a GET of its target gets (RFC 9110 §13.1.1)', async () => {
    const { send } = await serve(memoryStore(), {})
    const post = async (condition: string) =>
      (await send('POST', '/a', ['Content-Type: application/json', condition], '{}')).status
    const tagOf = async () => (await send('GET', '/a')).field('ETag')
    expect([await post('If-Match: *'), await post('If-None-Match: *')]).toEqual([412, 201])
    const tags = [await tagOf()]
    expect([await post('If-None-Match: *'), await post(`If-Match: ${tags[0]}`)]).toEqual([412, 201])
    await send('PUT', '/a', [text], 'its own')
    tags.push(await tagOf())
    expect([await post(`If-Match: ${tags[0]}`), await post(`If-Match: ${tags[1]}`)]).toEqual([412, 201])
  })

  it('answers the repeat of a conditional write that was done with 412 (RFC 9110 §13.1.1, row H134)', async () => {
    const { send } = await serveFixtures()
    const fields = [text, `If-Match: ${TAG}`]
    expect((await send('PUT', '/docs/a.bin', fields, 'new')).status).toBe(204)
    expect((await send('PUT', '/docs/a.bin', fields, 'new')).status).toBe(412)
  })

  it('lets one of twenty writers with the same tag win (RFC 9110 §13.1.1, row H132)', async () => {
    const { send } = await serve(memoryStore(), {})
    await send('PUT', '/a', [text], 'old')
    const tag = (await send('GET', '/a')).field('ETag')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => send('PUT', '/a', [text, `If-Match: ${tag}`], `new ${i}`)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array<number>(19).fill(412)])
    const created = await Promise.all(
      Array.from({ length: 20 }, (_, i) => send('PUT', '/b', [text, 'If-None-Match: *'], `new ${i}`)),
    )
    expect(created.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(19).fill(412)])
  })
})

describe('304 (RFC 9110 §15.4.5)', () => {
  const origin = 'Origin: https://app.example'

  it('has the fields of the 200 that a cache needs, and no others (rows H24, H135, H136)', async () => {
    const { send } = await serveFixtures({ cacheControl: 'max-age=60' })
    const whole = await send('GET', '/docs/a.bin')
    const { fields } = await send('GET', '/docs/a.bin', [`If-None-Match: ${TAG}`])
    const names = fields.map(([key]) => key).filter((key) => !/^(?:date|connection|keep-alive)$/.test(key))
    expect(names.sort()).toEqual(['cache-control', 'etag', 'x-content-type-options'])
    for (const [key, value] of fields) if (key !== 'date') expect(whole.field(key)).toBe(value)
  })

  it('tells the date where there is no tag', async () => {
    const { send } = await serveFixtures()
    const answer = await send('GET', '/docs/d.bin', [`If-Modified-Since: ${DATE}`])
    expect(answer.field('Last-Modified')).toBe(DATE)
  })

  it('has the fields of CORS (row H137)', async () => {
    const { send } = await serveFixtures({ cors: { origins: ['https://app.example'] } })
    const answer = await send('GET', '/docs/a.bin', [origin, `If-None-Match: ${TAG}`])
    expect(answer.field('Access-Control-Allow-Origin')).toBe('https://app.example')
    expect(answer.field('Vary')).toBe('Origin')
    expect((await send('GET', '/docs/a.bin', [`If-None-Match: ${TAG}`])).field('Vary')).toBe('Origin')
  })

  it('is answered for a page of a collection, and not once a member changed', async () => {
    const { send } = await serve(memoryStore(), {})
    const json = 'Content-Type: application/json'
    await send('PUT', '/users/1', [json], '{}')
    const page = await send('GET', '/users')
    expect((await send('GET', '/users', [`If-None-Match: ${page.field('ETag')}`])).status).toBe(304)
    await send('PUT', '/users/1', [json], '{}')
    expect((await send('GET', '/users', [`If-None-Match: ${page.field('ETag')}`])).status).toBe(200)
  })
})

describe("preconditions: 'required' (RFC 6585 §3, rows S1, S2, S4)", () => {
  const options = {
    resources: { '/docs/{name}': document({ preconditions: 'required' }) },
    auth: {
      schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace', eve: 'eve' } })],
      requireAuth: 'writes',
      authorize: (principal: { id: string } | undefined) => principal?.id !== 'eve',
    },
  } as const
  const ada = `Authorization: Basic ${btoa('ada:lovelace')}`
  const eve = `Authorization: Basic ${btoa('eve:eve')}`

  it.each<readonly [string, string, readonly string[], number]>([
    ['no principal', '/docs/a.bin', [], 401],
    ['somebody who may not', '/docs/a.bin', [eve], 403],
    ['a target that is missing', '/docs/missing', [ada], 404],
    ['a target that was removed', '/docs/gone', [ada], 410],
    ['no condition', '/docs/a.bin', [ada], 428],
    ['a date that is ignored', '/docs/a.bin', [ada, 'If-Unmodified-Since: foo 12'], 428],
    ['a date on a target without one', '/docs/n.bin', [ada, `If-Unmodified-Since: ${DATE}`], 428],
    ['If-Modified-Since, which does not count', '/docs/a.bin', [ada, `If-Modified-Since: ${DATE}`], 428],
    ['a tag that fails', '/docs/a.bin', [ada, 'If-Match: "x"'], 412],
    ['a tag that holds', '/docs/a.bin', [ada, `If-Match: ${TAG}`], 204],
    ['a date that holds', '/docs/a.bin', [ada, `If-Unmodified-Since: ${DATE}`], 204],
  ])('answers DELETE with %s', async (_, target, fields, status) => {
    const { send, store } = await serveFixtures(options)
    expect((await send('DELETE', target, fields)).status).toBe(status)
    expect(store.writes).toEqual(status === 204 ? [target] : [])
  })

  it('is not a matter of reads, nor of a PUT that creates', async () => {
    const { send } = await serveFixtures(options)
    expect((await send('GET', '/docs/a.bin')).status).toBe(200)
    expect((await send('PUT', '/docs/new', [ada, text], 'x')).status).toBe(201)
    expect((await send('PUT', '/docs/newer', [ada, text, 'If-None-Match: *'], 'x')).status).toBe(201)
    const refused = await send('PUT', '/docs/new', [ada, text], 'x')
    expect(refused.status).toBe(428)
    expect(refused.text).toContain('If-Match')
  })
})
