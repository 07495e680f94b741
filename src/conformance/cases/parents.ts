import { isResource } from '../../stores/rules.ts'
import { create, created, nameOf, put, race, remove } from '../calls.ts'
import { claim, claimEqual, claimResource, claimStored, claimTombstone } from '../claims.ts'
import { createIndex, indexed, listAll, listUnder } from '../lists.ts'
import { absent, binary, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

export const parents: readonly Case[] = [
  it('writes and creates where the path that is required is present', async ({ store, path }) => {
    await put(store, path(7), text('parent'))
    const requires = path(7)
    for (const body of ['own', stream(Buffer.from('own'), 2)]) {
      const result = await store.write(`${path(7)}/parts/x`, text(body), { expect: 'any', requires })
      claim(result.outcome !== 'conflict', 'The required path was present, and the write was refused.')
    }
    const stale = { expect: { version: 'nonesuch' }, requires }
    const refused = await store.write(`${path(7)}/parts/x`, text('other'), stale)
    claim(refused.outcome === 'conflict', 'A write that expected another version happened.')
    claimEqual(refused.missing, undefined, 'A conflict names a missing path although the required one is present.')
    const member = created(await store.create(`${path(7)}/parts`, text('own'), { requires }))
    claimEqual(member.path, `${path(7)}/parts/${nameOf(member)}`, 'The member stands in another collection.')
    claimEqual((await listAll(store, `${path(7)}/parts`, 1)).length, 2, 'What was written is not listed.')
  }),
  it('writes nothing at all while the path that is required is not present or hidden, and says which it is', async (bench) => {
    const { store, path, modes } = bench
    for (const [name, mode] of [undefined, ...modes].entries()) {
      const requires = path(name)
      if (mode !== undefined) {
        await put(store, requires, text('parent'))
        await remove(store, requires, mode)
      }
      const child = `${requires}/parts/1`
      const related = [{ path: `${requires}/log/1`, content: text('related') }]
      for (const body of ['own', stream(Buffer.alloc(100_000), 60_000)]) {
        for (const expect of ['any', 'absent', 'present', { version: 'nonesuch' }] as const) {
          const result = await store.write(child, text(body), { expect, requires, related })
          claim(result.outcome === 'conflict', `The required path was not present (${mode}), and the write went on.`)
          claimEqual(result.missing, requires, 'The conflict does not say which path is missing.')
        }
        const result = await store.create(`${requires}/parts`, binary(body), { requires, related: () => related })
        claim(result.outcome === 'conflict', `The required path was not present (${mode}), and a member was created.`)
        claimEqual(result.missing, requires, 'The conflict does not say which path is missing.')
      }
      for (const left of [child, `${requires}/log/1`])
        claimEqual(await store.read(left), undefined, 'A refused write has left something.')
      const { items } = await store.list(`${requires}/parts`, { limit: 5 })
      claimEqual(items, [], 'A refused creation has left a member.')
    }
  }),
  it('judges the path that is required before all others, and names no missing path in other conflicts', {
    needs: ['related', 'relatedExpect'],
  }, async ({ store, path }) => {
    await put(store, path('record'), text('there'))
    const related = [absent(path('record'), 'loser')]
    const options = { expect: { version: 'nonesuch' }, related, requires: path(7) }
    const attempts = [
      await store.write(path(1), text('own'), options),
      await store.create('/others', text('own'), { related: () => related, requires: path(7) }),
    ]
    for (const result of attempts) {
      const missing = result.outcome === 'conflict' && result.missing
      claimEqual(missing, path(7), 'The required path is judged first of all.')
    }
    await put(store, path(7), text('parent'))
    const conflict = await store.write(path(1), text('own'), options)
    claim(conflict.outcome === 'conflict', 'The related path was not absent, and the write went on.')
    claimEqual(conflict.missing, undefined, 'A conflict names a missing path although the required one is present.')
    claimEqual(conflict.related?.path, path('record'), 'The conflict does not name the related path.')
  }),
  it('removes with a path everything below it, at any depth, without a trace', async ({ store, path, modes }) => {
    for (const mode of modes.filter((mode) => mode !== 'hide')) {
      const parent = path(7)
      const names = ['parts/1', 'parts/2', 'parts/1/deep/er/x', 'file', 'a b', '%', 'é', '/4', '']
      const below = names.map((name) => `${parent}/${name}`)
      await put(store, parent, text('parent'))
      for (const own of below) await put(store, own, text(own))
      await put(store, `${parent}/large`, binary(stream(Buffer.alloc(900_000), 65_536)))
      for (const hidden of modes.includes('hide') ? [`${parent}/parts/2`, `${parent}/a b`] : [])
        await remove(store, hidden, 'hide')
      if (modes.includes('tombstone')) await remove(store, `${parent}/file`, 'tombstone')
      // Read repeatedly: a store may keep what is asked for a second time.
      for (const own of [...below, ...below]) await store.read(own)
      for (let i = 0; i < 3; i++) await listAll(store, `${parent}/parts`, 5, true)
      const result = await remove(store, parent, mode, { below: true })
      claimEqual(result.outcome, 'removed', 'The path was there to be removed.')
      claim(!isResource(await store.read(parent, { hidden: true })), 'The path itself was not removed.')
      for (const own of [...below, `${parent}/large`]) {
        for (const hidden of [true, false])
          claimEqual(await store.read(own, { hidden }), undefined, 'Something below a removed path has left a trace.')
      }
      for (const collection of [parent, `${parent}/parts`, `${parent}/parts/1/deep/er`])
        claimEqual(await listAll(store, collection, 5, true), [], 'Something below a removed path is still listed.')
      await put(store, parent, text('again'))
      const returned = await listAll(store, `${parent}/parts`, 5, true)
      claimEqual(returned, [], 'A path that is made again brings nothing back.')
    }
  }),
  it('leaves all that is not below a removed path alone', async ({ store, collection, path }) => {
    const others = [
      ...[path('a_b2'), path('a_b2/1'), path('axb/1'), path('A_B/1'), path('a_'), path('a_/b'), path('a_b%2F1')],
      ...[collection, `/x${path('a_b')}/1`, `${path('a_b').slice(1)}/1`, path('a_b!'), path('a_b0/1'), path('1')],
    ]
    for (const other of others) await put(store, other, text(other))
    await put(store, path('a_b'), text('parent'))
    await put(store, path('a_b/1'), text('child'))
    await remove(store, path('a_b'), 'erase', { below: true })
    claimEqual(await store.read(path('a_b/1')), undefined, 'What is below a removed path goes with it.')
    for (const other of others)
      await claimStored(store, other, text(other), `${other} is not below the removed path, and is gone.`)
  }),
  it('removes what is below a path of any characters, and nothing else', { needs: ['paths'] }, async (bench) => {
    const { store, path } = bench
    for (const name of ["'", '%', '_', ' ', '🜚', 'a\u0000b', 'a\u00010000b']) {
      const [parent, beside] = [path(name), path(`${name}0`)]
      for (const own of [parent, `${parent}/1`, beside, `${beside}/1`]) await put(store, own, text(own))
      await remove(store, parent, 'erase', { below: true })
      claimEqual(await store.read(`${parent}/1`), undefined, 'What is below a removed path goes with it.')
    }
    for (const own of [path("'0"), path('%0/1'), path('a\u0000b0/1'), path('a\u00010000b0')])
      await claimStored(store, own, text(own), `${own} is not below the removed path, and is gone.`)
  }),
  it('keeps its own tombstone, and those beside it, where a path is removed with everything below it', {
    needs: ['tombstones'],
  }, async ({ store, path }) => {
    const others = [path(70), path('7x'), path('7-1/a')]
    for (const own of [...others, path(7), path('7/1')]) await put(store, own, text(own))
    for (const own of [...others, path('7/1')]) await remove(store, own, 'tombstone')
    await remove(store, path(7), 'tombstone', { below: true })
    for (const own of [path(7), ...others])
      claimTombstone(await store.read(own), own, 'A removal of what is below a path has forgotten another tombstone.')
  }),
  it('removes nothing below a path that is not removed, or is removed without what is below it', async (bench) => {
    const { store, path } = bench
    const { version } = await put(store, path(7), text('parent'))
    await put(store, path(7), text('changed'))
    await put(store, path('7/1'), text('child'))
    const refused = await store.remove(path(7), { expect: { version }, mode: 'erase', below: true })
    claimEqual(refused.outcome, 'conflict', 'A removal that expected a version of the past happened.')
    await claimStored(store, path('7/1'), text('child'), 'A refused removal has removed what is below.')
    await remove(store, path(7))
    await claimStored(store, path('7/1'), text('child'), 'Only a removal with `below` removes what is below.')
    await remove(store, path(7), 'erase', { below: true })
    const nothing = 'A removal that found nothing to remove has removed what is below.'
    await claimStored(store, path('7/1'), text('child'), nothing)
  }),
  it('assigns no name again below a path that was removed and made again', async ({ store, path }) => {
    const parts = `${path(7)}/parts`
    const seen = new Set<string>()
    for (let round = 0; round < 3; round++) {
      await put(store, path(7), text('parent'))
      for (let i = 0; i < 3; i++) seen.add((await create(store, parts, text('x'))).path)
      await remove(store, path(7), 'erase', { below: true })
    }
    claimEqual(seen.size, 9, 'A name was assigned again below a path that was made again.')
  }),
  it('removes what is below a path from queries as well', { needs: ['queries'] }, async ({ store, path }) => {
    const index = createIndex('below', ['a'])
    const parts = `${path(7)}/parts`
    const list = listUnder(store, parts, index)
    await put(store, path(7), text('parent'))
    for (let i = 0; i < 4; i++) await create(store, parts, indexed(index, { a: i }))
    const before = await list.ask({ order: ['a'] })
    claimEqual(before.items.length, 4, 'Members below a path are indexed.')
    await remove(store, path(7), 'erase', { below: true })
    const { items, total } = await list.ask({ order: ['a'], count: true, hidden: true })
    const again = await list.ask({ order: ['a'] })
    const found = [items.length, total, again.items.length]
    claimEqual(found, [0, 0, 0], 'A query still finds what is below a removed path.')
  }),
  it('lets no item be written below a path in the moment in which it is removed', async ({ store, path, reopen }) => {
    const stores = [store, await reopen()]
    for (let round = 1; round <= 4; round++) {
      const parent = path(round)
      await put(store, parent, text('parent'))
      const results = await race<{ readonly outcome: string }>(stores, 16, (own, i) => {
        if (i === 9) return remove(own, parent, 'erase', { below: true })
        const body = i % 4 === 0 ? stream(Buffer.alloc(70_000), 30_000) : 'child'
        const requires = parent
        if (i % 3 === 0) return own.create(`${parent}/parts`, binary(body), { requires })
        return own.write(`${parent}/items/${i}`, binary(body), { expect: 'any', requires })
      })
      claimEqual(results[9]!.outcome, 'removed', 'The path was there to be removed.')
      claim(!isResource(await store.read(parent)), 'The path itself was not removed.')
      for (const collection of [`${parent}/parts`, `${parent}/items`]) {
        const left = await listAll(store, collection, 50, true)
        claimEqual(left, [], 'An item has been written below a path that was removed in that moment.')
      }
    }
  }),
  it('has removed what is below a path for every process, and after a sudden end', {
    needs: ['durable'],
  }, async ({ store, path, reopen, crash }) => {
    const other = await reopen()
    await put(store, path(7), text('parent'))
    for (const name of ['7/1', '7/2/3']) await put(store, path(name), text('child'))
    // Read repeatedly: a store may keep what is asked for a second time.
    for (let i = 0; i < 3; i++) claimResource(await other.read(path('7/1')), 'Another process does not find a child.')
    for (let i = 0; i < 3; i++) await listAll(other, path(7), 5)
    await remove(store, path(7), 'erase', { below: true })
    claimEqual(await other.read(path('7/1')), undefined, 'Another process finds what is below a removed path.')
    claimEqual(await listAll(other, path(7), 5), [], 'Another process lists what is below a removed path.')
    const reopened = await crash()
    for (const name of ['7', '7/1', '7/2/3'])
      claimEqual(await reopened.read(path(name)), undefined, 'What was removed came back after a sudden end.')
  }),
]
