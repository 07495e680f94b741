import { afterEach, describe, expect, it } from 'vitest'
import type { ConflictHook } from '../../src/actions/hook-types.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { startService, type Target } from '../writes/support.ts'

const JSON_TYPE = { 'Content-Type': 'application/json' }
const MERGE = { 'Content-Type': 'application/merge-patch+json' }
const JSON_PATCH = { 'Content-Type': 'application/json-patch+json' }
const SENTENCE = 'A shipped order cannot be changed.'

interface Order {
  readonly item: string
  readonly state: 'open' | 'shipped'
}

const refuseShipped: ConflictHook = (_proposed, current) =>
  (current?.value as Order | undefined)?.state === 'shipped' ? SENTENCE : undefined

let target: Target
afterEach(() => target.close())

async function start(options: CollectionOptions): Promise<void> {
  target = await startService({ resources: { '/orders': collection(options) } })
  await target.send('POST', '/orders', { fields: JSON_TYPE, body: '{"item":"lamp","state":"open"}' })
}

const read = async (): Promise<unknown> => JSON.parse((await target.send('GET', '/orders/1')).text)
const patch = (body: string, fields: Record<string, string> = MERGE) =>
  target.send('PATCH', '/orders/1', { fields, body })

describe('conflict', () => {
  it('refuses PUT and PATCH alike, and nothing changes', async () => {
    await start({ conflict: refuseShipped, idempotency: 'optional' })
    expect((await patch('{"state":"shipped"}')).status).toBe(200)
    const answers = [
      await target.send('PUT', '/orders/1', { fields: JSON_TYPE, body: '{"item":"bulb","state":"open"}' }),
      await patch('{"item":"bulb"}'),
      await patch('[{"op":"replace","path":"/item","value":"bulb"}]', JSON_PATCH),
      await patch('{"item":"bulb"}', { ...MERGE, 'Idempotency-Key': '"8e03978e-40d5-43e8-bc93"' }),
    ]
    for (const { status, text } of answers) {
      expect([status, JSON.parse(text)]).toMatchObject([409, { detail: SENTENCE }])
    }
    expect(await read()).toEqual({ id: 1, item: 'lamp', state: 'shipped' })
  })

  it('sees the patched document beside the one that it replaces', async () => {
    const seen: unknown[] = []
    await start({
      conflict: (proposed, current) => {
        seen.push([proposed.path, proposed.value, current?.value])
        return undefined
      },
    })
    await patch('{"item":"bulb"}')
    expect(seen).toEqual([
      ['/orders/1', { id: 1, item: 'bulb', state: 'open' }, { id: 1, item: 'lamp', state: 'open' }],
    ])
  })

  it('sees what beforeWrite has made of a patch, and is not asked about a patch that changes nothing', async () => {
    const seen: unknown[] = []
    await start({
      beforeWrite: (value, { kind }) => ({ ...(value as object), kind }),
      conflict: (proposed) => void seen.push(proposed.value) as undefined,
    })
    await patch('{"item":"bulb"}')
    expect((await patch('{"item":"bulb"}')).status).toBe(204)
    expect(seen).toEqual([{ id: 1, item: 'bulb', state: 'open', kind: 'patched' }])
  })

  it('judges the state that won, when another request changes the resource while it is asked about a patch', async () => {
    let isFirst = true
    await start({
      conflict: async (_proposed, current) => {
        if (isFirst) {
          isFirst = false
          const body = '{"id":1,"item":"lamp","state":"shipped"}'
          await target.store.write('/orders/1', { contentType: 'application/json', body }, { expect: 'any' })
        }
        return refuseShipped(current!, current, undefined as never)
      },
    })
    expect((await patch('{"item":"bulb"}')).status).toBe(409)
    expect(await read()).toEqual({ id: 1, item: 'lamp', state: 'shipped' })
  })

  it('sees no state before a PUT that restores: what was deleted is in the way of nothing', async () => {
    const seen: unknown[] = []
    await start({
      deletion: 'soft',
      conflict: (proposed, current) => {
        seen.push([proposed.value, current?.value])
        return refuseShipped(proposed, current, undefined as never)
      },
    })
    const put = async (item: string, state: string) => {
      const body = JSON.stringify({ item, state })
      return (await target.send('PUT', '/orders/1', { fields: JSON_TYPE, body })).status
    }
    expect(await put('lamp', 'shipped')).toBe(204)
    expect((await target.send('DELETE', '/orders/1')).status).toBe(204)
    expect(await put('bulb', 'open')).toBe(201)
    expect(seen.at(-1)).toEqual([{ id: 1, item: 'bulb', state: 'open' }, undefined])
  })

  it('refuses a file of an item that conflicts, and the file is not stored', async () => {
    await start({ conflict: refuseShipped, files: { label: { replaceable: true } } })
    const put = (body: string) =>
      target.send('PUT', '/orders/1/label', { fields: { 'Content-Type': 'text/plain' }, body })
    expect((await put('first')).status).toBe(201)
    expect((await patch('{"state":"shipped"}')).status).toBe(200)
    expect((await put('second')).status).toBe(409)
    expect((await target.send('GET', '/orders/1/label')).text).toBe('first')
  })

  it.each([
    ['true', true],
    ['null', null],
    ['the number 409', 409],
    ['an object', { detail: SENTENCE }],
  ])('changes nothing where it returns %s, and the error names the hook and what it returns', async (text, verdict) => {
    const errors: unknown[] = []
    const resources = { '/orders': collection({ conflict: (async () => verdict) as never }) }
    target = await startService({ resources, onError: (error) => void errors.push(error) })
    await target.send('POST', '/orders', { fields: JSON_TYPE, body: '{"item":"lamp"}' })
    expect((await target.send('PUT', '/orders/1', { fields: JSON_TYPE, body: '{"item":"bulb"}' })).status).toBe(500)
    expect((await patch('{"item":"bulb"}')).status).toBe(500)
    const message = `conflict of /orders must return a sentence for the client, or undefined for no conflict, not ${text}.`
    expect(errors.map(String)).toEqual([`TypeError: ${message}`, `TypeError: ${message}`])
    expect(await read()).toEqual({ id: 1, item: 'lamp' })
  })
})
