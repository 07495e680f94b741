import { describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { multipartOf, waitFor } from '../writes/support.ts'
import { start } from './scoped.ts'
import { STORES } from './stores.ts'

/** Short text, what is one piece in every store, and what no store keeps in one piece. */
const CONTENTS = ['ä', 'ä'.repeat(20_000), 'ä'.repeat(600_000)].map((text) => Buffer.from(text))
const TEXT = { Accept: 'text/plain' }

describe.each(Object.entries(STORES))('a function that changes in place what it is given, on %s,', (_, createStore) => {
  it('as render does with content, changes nothing that is stored', async () => {
    const render = (content: Uint8Array) => content.fill(0x78)
    const target = await start(createStore(), {
      '/files/{name}': document({ representations: [{ type: 'application/x-masked', render }] }),
    })
    for (const content of CONTENTS) {
      await target.send('PUT', '/files/a', { fields: { 'Content-Type': 'text/plain' }, body: content })
      for (const Accept of ['text/plain', 'application/x-masked', 'text/plain']) {
        const { body } = await target.send('GET', '/files/a', { fields: { Accept } })
        expect(body.equals(Accept === 'text/plain' ? content : Buffer.alloc(content.length, 'x'))).toBe(true)
      }
    }
  })

  it('as process does with a file, changes nothing that is stored', async () => {
    const target = await start(createStore(), {
      '/jobs': collection({
        create: 'accepted',
        async process({ file }) {
          for await (const piece of (await file('scan'))!.open()) piece.fill(0x78)
        },
      }),
    })
    for (const [index, content] of CONTENTS.entries()) {
      await target.send('POST', '/jobs', multipartOf([{ name: 'scan', filename: 'a', type: 'text/plain', content }]))
      const path = `/jobs/${index + 1}`
      await waitFor(
        () => target.send('GET', path),
        (answer) => answer.json().state === 'ready',
      )
      for (let i = 0; i < 2; i++) {
        expect((await target.send('GET', `${path}/scan`, { fields: TEXT })).body.equals(content)).toBe(true)
      }
    }
  })

  it('as describe does with what is known of a file, does not rename the file', async () => {
    const describe = (file: object) => Object.assign(file, { name: 'b' })
    const target = await start(createStore(), { '/notes': collection({ files: { photo: { describe } } }) })
    const file = { name: 'photo', filename: 'a', type: 'image/png', content: 'x' }
    const created = await target.send('POST', '/notes', multipartOf([file]))
    expect(created.json()).toEqual({ id: 1, photo: { name: 'b', type: 'image/png', size: 1 } })
    expect((await target.send('GET', '/notes/1/photo')).values('content-disposition')).toEqual(['inline; filename="a"'])
  })
})
