import { afterEach, describe, expect, it } from 'vitest'
import { json } from '../../src/actions/hook-types.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { watchStaged } from '../support/watch-staged.ts'
import { jsonOf, multipartOf, type SendOptions, startService, type Target } from '../writes/support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const LARGE = Buffer.alloc(300_000, 'x')
const FORM = multipartOf([
  { name: 'scan', filename: 's', content: LARGE },
  { name: 'photo', filename: 'p', content: LARGE },
])
const TEXT = { fields: { 'Content-Type': 'text/plain' }, body: LARGE }

const fail = (): never => {
  throw new Error('The hook fails.')
}
const refuse = (): never => {
  throw new HttpError(422, 'ERR_INVALID_CONTENT')
}
const files = { scan: {}, photo: {} }

describe('large content of a POST', () => {
  it.each<readonly [string, number, CollectionOptions, SendOptions]>([
    ['describe fails', 500, { files: { scan: {}, photo: { describe: fail } } }, FORM],
    ['describe refuses', 422, { files: { scan: {}, photo: { describe: refuse } } }, FORM],
    ['beforeWrite fails', 500, { files, beforeWrite: fail }, FORM],
    ['outbox fails', 500, { files, outbox: fail }, FORM],
    ['outbox refuses', 422, { files, outbox: refuse }, FORM],
    ['outbox fails for ids of the service', 500, { files, outbox: fail, ids: 'uuid' }, FORM],
    ['outbox fails for content of its own', 500, { types: ['text/plain'], outbox: fail }, TEXT],
    [
      'the outbox is in the way of another resource',
      409,
      { files, outbox: () => [{ path: '/log/taken', content: json({}), expect: 'absent' }] },
      FORM,
    ],
  ])('is given up where %s (%i)', async (_, status, options, request) => {
    const { store, open } = watchStaged()
    target = await startService({ resources: { '/items': collection(options) }, onError: () => undefined }, store)
    await store.write('/log/taken', json({}), { expect: 'any' })
    expect((await target.send('POST', '/items', request)).status).toBe(status)
    expect(open.size).toBe(0)
    expect((await store.list('/items', { limit: 1, hidden: true })).items).toEqual([])
  })

  it('is given up where the store fails', async () => {
    const { store, open } = watchStaged()
    const create = () => Promise.reject(new HttpError(503, 'ERR_UNAVAILABLE'))
    target = await startService({ resources: { '/items': collection({ files }) } }, { ...store, create })
    expect((await target.send('POST', '/items', FORM)).status).toBe(503)
    expect(open.size).toBe(0)
  })

  it('is given up where the request repeats one that was answered', async () => {
    const { store, open } = watchStaged()
    const keyed = { ...FORM, fields: { ...FORM.fields, 'Idempotency-Key': '"a-key-of-sixteen"' } }
    target = await startService({ resources: { '/items': collection({ files, idempotency: 'optional' }) } }, store)
    const answers = await Promise.all([1, 2, 3].map(() => target!.send('POST', '/items', keyed)))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    // The two files of the one item.
    expect(open.size).toBe(2)
  })
})

it('large content of a file that PUT brings is given up where the change of its item is refused', async () => {
  const { store, open } = watchStaged()
  const outbox = ({ kind }: { kind: string }) => (kind === 'patched' ? refuse() : [])
  const tasks = collection({ files: { photo: { replaceable: true } }, outbox })
  target = await startService({ resources: { '/tasks': tasks } }, store)
  await target.send('POST', '/tasks', jsonOf({}))
  expect((await target.send('PUT', '/tasks/1/photo', TEXT)).status).toBe(422)
  expect(open.size).toBe(0)
})
