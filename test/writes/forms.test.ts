import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { FORM, jsonOf, multipartOf, type Part, startDemo, startService, type Target } from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

const countJobs = async (): Promise<number> => (await demo.send('GET', '/jobs?limit=500')).json().length

describe('POST of a form to /jobs', () => {
  it.each([
    ['name=x&pri=5', { name: 'x', priority: 5 }],
    ['name=x&priority=5', { name: 'x', priority: 5 }],
    ['pri=-3&name=a+b%20c', { name: 'a b c', priority: -3 }],
    ['name=123&pri=0', { name: '123', priority: 0 }],
    ['name=true&pri=7', { name: 'true', priority: 7 }],
    ['name=%zz+b&pri=1', { name: '%zz b', priority: 1 }],
    ['name=gr%C3%BC%C3%9Fe&pri=1', { name: 'grüße', priority: 1 }],
    ['name=x&pri=1&tag=a&tag=b', { name: 'x', priority: 1, tag: ['a', 'b'] }],
    ['?name=q&name=x&pri=1', { '?name': 'q', name: 'x', priority: 1 }],
    ['&&name=x&&pri=1&', { name: 'x', priority: 1 }],
    ['name=a=b&pri=1', { name: 'a=b', priority: 1 }],
    ['name=x&pri=1&a[b][c]=2&a.b=3', { name: 'x', priority: 1, 'a[b][c]': '2', 'a.b': '3' }],
    ['name=x&pri=1&constructor=2', { name: 'x', priority: 1, constructor: '2' }],
  ])('%s (rows U1, U2, U3, threats 76, 80, interface POST 2)', async (body, expected) => {
    const answer = await demo.send('POST', '/jobs', { fields: FORM, body })
    expect(answer.status).toBe(201)
    const { id, ...job } = answer.json()
    expect([job, answer.field('location')]).toEqual([expected, `/jobs/${id}`])
    expect((await demo.send('GET', `/jobs/${id}`)).json()).toEqual({ id, ...expected })
  })

  it.each([
    ['name=x&pri=x', 422],
    ['name=x&pri=', 422],
    ['name=x&pri=5.5', 422],
    ['name=x&pri=1e400', 422],
    ['name=x&pri=9007199254740993', 422],
    ['name=x&pri=+5', 422],
    ['name=x&pri=05', 422],
    ['name=x&pri=0x5', 422],
    ['name=x&pri=true', 422],
    ['name=x&pri=1&pri=2', 422],
    ['name=x', 422],
    ['', 422],
    ['name=x&pri=5&id=1', 422],
    ['name=x&pri=5&priority=5', 400],
    ['name=x&priority=5&pri=5', 400],
    ['name=%ff&pri=1', 400],
    ['name=x&pri=1&__proto__=2', 400],
    [`name=x&pri=1&${'n'.repeat(201)}=1`, 400],
  ])('%s is refused with %i, and changes nothing (rows U1 to U4, threats 79, 80, 83)', async (body, status) => {
    const before = await countJobs()
    const answer = await demo.send('POST', '/jobs', { fields: FORM, body })
    expect(answer.status).toBe(status)
    expect(await countJobs()).toBe(before)
    expect(({} as Record<string, unknown>)['2']).toBeUndefined()
  })

  it('takes 1000 parameters and no more (threat 78)', async () => {
    const body = (count: number): string =>
      `name=x&pri=1&${Array.from({ length: count - 2 }, (_, index) => `p${index}=${index}`).join('&')}`
    const full = await demo.send('POST', '/jobs', { fields: FORM, body: body(1000) })
    expect([full.status, Object.keys(full.json()).length]).toEqual([201, 1001])
    expect((await demo.send('POST', '/jobs', { fields: FORM, body: body(1001) })).status).toBe(413)
  })

  it('refuses another charset (threat 65)', async () => {
    const fields = { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-7' }
    expect((await demo.send('POST', '/jobs', { fields, body: 'name=x&pri=1' })).status).toBe(415)
  })

  it('takes the same from multipart/form-data (interface POST 2)', async () => {
    const parts = (pri: string): Part[] => [
      { name: 'name', content: 'x' },
      { name: pri, content: '5' },
    ]
    for (const pri of ['pri', 'priority']) {
      const answer = await demo.send('POST', '/jobs', multipartOf(parts(pri)))
      expect([answer.status, answer.json()]).toMatchObject([201, { name: 'x', priority: 5 }])
    }
    const both = [...parts('pri'), { name: 'priority', content: '5' }]
    expect((await demo.send('POST', '/jobs', multipartOf(both))).status).toBe(400)
    const file = [...parts('pri'), { name: 'file', filename: 'a.txt', content: 'x' }]
    expect((await demo.send('POST', '/jobs', multipartOf(file))).status).toBe(422)
  })

  it('gives a schema that changes its input in place what was sent, once', async () => {
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate(value: { text: string }) {
          value.text += '!'
          return { value }
        },
      },
    }
    const target = await startService({ resources: { '/notes': collection({ schema: schema as never }) } })
    for (const options of [{ fields: FORM, body: 'text=a' }, multipartOf([{ name: 'text', content: 'a' }])]) {
      expect((await target.send('POST', '/notes', options)).json().text).toBe('a!')
    }
  })

  it('maps the names of forms only: in JSON, pri is a member like any other', async () => {
    expect((await demo.send('POST', '/jobs', jsonOf({ name: 'x', pri: 5 }))).status).toBe(422)
    expect((await demo.send('POST', '/jobs', jsonOf({ name: 'x', priority: '5' }))).status).toBe(422)
    const both = await demo.send('POST', '/jobs', jsonOf({ name: 'x', pri: 'y', priority: 5 }))
    expect(both.json()).toMatchObject({ name: 'x', pri: 'y', priority: 5 })
  })

  it('names the field by the member it stands for (row H179)', async () => {
    const answer = await demo.send('POST', '/jobs', { fields: FORM, body: 'name=x&pri=x' })
    expect(answer.json().errors).toEqual([expect.objectContaining({ pointer: '/priority' })])
  })
})

describe('POST of text to a collection with a text member', () => {
  it('makes a member of it (interface POST 2)', async () => {
    const target = await startService({ resources: { '/notes': collection({ textProperty: 'body' }) } })
    const send = (type: string, body: string | Uint8Array) =>
      target.send('POST', '/notes', { fields: { 'Content-Type': type }, body })
    expect((await send('text/plain', 'grün\r\n')).json()).toEqual({ id: 1, body: 'grün\r\n' })
    expect((await send('text/plain; charset=iso-8859-1', Buffer.from('gr\xfcn', 'latin1'))).json().body).toBe('grün')
    expect((await send('text/plain; charset=x-none', 'a')).status).toBe(415)
    expect((await send('text/plain', Buffer.from([0xff]))).status).toBe(400)
    expect((await send('text/html', 'a')).status).toBe(415)
    await target.close()
  })
})

describe('a form and the limits of the service', () => {
  it('has as many values as formFields and jsonMembers allow, whatever their defaults are', async () => {
    const post = async (limits: { formFields: number; jsonMembers: number }, count: number) => {
      const target = await startService({ resources: { '/jobs': collection() }, limits })
      const { status } = await target.send('POST', '/jobs', { fields: FORM, body: 'x&'.repeat(count) })
      await target.close()
      return status
    }
    const large = { formFields: 200_000, jsonMembers: Number.POSITIVE_INFINITY }
    expect([await post(large, 100_001), await post(large, 200_001)]).toEqual([201, 413])
    const small = { formFields: 200_000, jsonMembers: 10 }
    expect([await post(small, 9), await post(small, 10)]).toEqual([201, 413])
  })
})
