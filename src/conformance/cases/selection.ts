import type { Condition } from '../../stores/lists.ts'
import { create, factsOf, nameOf, put, readResource, remove } from '../calls.ts'
import { claimContent, claimEqual, claimResource } from '../claims.ts'
import { createIndex, indexed, is, listAll, listUnder, plain } from '../lists.ts'
import { range, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

const INDEX = createIndex('selection', ['a', 'b'])

export const selection: readonly Case[] = [
  it('selects the members that meet all conditions, several on one property included', async (bench) => {
    const { store, collection } = bench
    const list = listUnder(store, collection, INDEX)
    await list.fill(range(0, 29).map((i) => ({ a: i % 5, b: i })))
    const from: Condition = { property: 'b', operator: 'gte', value: 5 }
    const to: Condition = { property: 'b', operator: 'lt', value: 16 }
    const onlyFours: Condition = { property: 'a', operator: 'notIn', values: [0, 1, 2, 3] }
    const claimAll = (where: readonly Condition[], expected: readonly number[]) =>
      list.claimFound({ where }, expected, 'All conditions must match.')
    await claimAll([is('a', 2), from], [8, 13, 18, 23, 28])
    await claimAll([from, to, is('a', 2, 3)], [8, 9, 13, 14])
    await claimAll([is('a', 2), is('a', 2, 3)], [3, 8, 13, 18, 23, 28])
    await claimAll([is('a', 2), is('a', 3)], [])
    await claimAll([{ property: 'a', operator: 'exists', value: false }, from], [])
    await claimAll([onlyFours, from, to, is('b', 9, 14, 19)], [10, 15])
    await claimAll([{ property: 'b', operator: 'gt', value: 16 }, to], [])
  }),
  it('selects by the properties of the scope as by others, alone, together and beside other conditions', async (bench) => {
    const { store, collection } = bench
    const list = listUnder(store, collection, createIndex('scoped', ['owner', 'region', 'rank'], ['owner', 'region']))
    const owners = ['ann', 'ann ', 'Ann', 'an', 'annn', null, 7, '7', true]
    const members = owners.flatMap((owner, i) =>
      ['eu', 'us', null].map((region, j) => ({ owner, region, rank: i + j })),
    )
    await list.fill(members)
    const claimScope = (where: readonly Condition[], isMatch: (member: (typeof members)[number]) => boolean) => {
      const expected = members.flatMap((member, at) => (isMatch(member) ? [at + 1] : []))
      const sentence = 'Properties of the scope are compared by equality, all together.'
      return list.claimFound({ where }, expected, sentence)
    }
    const low: Condition = { property: 'rank', operator: 'lte', value: 3 }
    const ownerless: Condition = { property: 'owner', operator: 'exists', value: false }
    for (const name of ['ann', 'Ann', 7, '7', true]) {
      const own = is('owner', name)
      await claimScope([own], ({ owner }) => owner === name)
      await claimScope([is('region', 'eu'), own], ({ owner, region }) => owner === name && region === 'eu')
    }
    await claimScope(
      [is('owner', 'an', 'ann', 7), is('region', 'eu', 'us'), low],
      ({ owner, region, rank }) => ['an', 'ann', 7].includes(owner as string) && region !== null && rank <= 3,
    )
    await claimScope([is('owner', 'ann'), is('owner', 'an')], () => false)
    await claimScope([is('region', 'us'), ownerless], ({ owner, region }) => owner === null && region === 'us')
  }),
  it('takes any text for the name of a property and for a value', async ({ store, collection }) => {
    const texts = [
      ...["'", '"', "x'); DROP TABLE x; --", '$1', '?', '%s', '\\', 'a.b', 'a b', 'é', '🜚'],
      ...['__proto__', 'toString'],
    ]
    for (const [name, property] of texts.entries()) {
      const index = createIndex(`names-${name}`, [property])
      const own = `${collection}-${name}`
      const list = listUnder(store, own, index)
      await list.fill(['x', ...texts].map((value) => Object.fromEntries([[property, value]])))
      await put(store, `${own}/99`, indexed(index, {}))
      const sentence = `The property ${JSON.stringify(property)} is a name like any other.`
      for (const [at, value] of texts.entries())
        await list.claimFound({ where: [is(property, value)], order: [property] }, [at + 2], sentence)
      await list.claimFound({ where: [{ property, operator: 'exists', value: false }] }, [99], sentence)
    }
  }),
  it('selects and orders by each of sixteen properties', async ({ store, collection }) => {
    const properties = Array.from({ length: 16 }, (_, i) => `p${String(i).padStart(2, '0')}`)
    const list = listUnder(store, collection, createIndex('sixteen', properties))
    const member = (seed: number) => Object.fromEntries(properties.map((name, i) => [name, (seed * (i + 3)) % 17]))
    const members = Array.from({ length: 16 }, (_, i) => member(i + 1))
    await list.fill(members)
    for (const property of properties) {
      const names = members
        .map((values, at) => ({ name: at + 1, value: values[property]! }))
        .filter(({ value }) => value > 8)
        .sort((a, b) => b.value - a.value || a.name - b.name)
        .map(({ name }) => name)
      const question = { where: [{ property, operator: 'gt', value: 8 } as const], order: [`-${property}`] }
      const sentence = 'An index has up to 16 properties, each of which selects and orders.'
      await list.claimFound(question, names, sentence)
    }
  }),
  it('keeps the values that content was written with, and gives them back in all that it returns', {
    needs: ['related', 'paths'],
  }, async ({ store, collection, path, modes }) => {
    const values = { a: 'x', b: 2 }
    const given = { a: 'x', b: 2 }
    const related = [{ path: '/others/1', content: indexed(INDEX, { a: 'y', b: null }) }]
    const result = await store.write(path(1), indexed(INDEX, given), { expect: 'any', related })
    given.a = 'changed by the caller afterwards'
    const member = await create(store, collection, () => indexed(INDEX, values))
    const page = await listUnder(store, collection, INDEX).ask()
    const states = [
      ...(result.outcome === 'conflict' ? [] : [result.resource]),
      ...[member, await store.read(path(1)), await store.read(path(1), { metadataOnly: true }), ...page.items],
      ...(await store.list(collection, { limit: 5 })).items,
    ]
    claimEqual(states.length, 8, 'Two members were written.')
    for (const mode of modes) {
      await put(store, path(1), indexed(INDEX, values))
      const removed = await remove(store, path(1), mode)
      if (removed.outcome === 'removed') states.push(removed.resource)
      if (mode === 'hide') states.push(claimResource(await store.read(path(1), { hidden: true }), 'It is gone.'))
    }
    for (const found of states) {
      const state = claimResource(found, 'The resource was not found.')
      claimEqual(state.indexed?.index.version, INDEX.version, 'A state has the version of the index of its values.')
      claimEqual({ ...state.indexed?.values }, values, 'A state has the values that it was written with.')
    }
    const other = claimResource(await store.read('/others/1'), 'The related path was not found.')
    const { a, b = null } = other.indexed?.values ?? {}
    claimEqual([a, b], ['y', null], 'A related state has the values that it was written with.')
    const others = listUnder(store, '/others', INDEX)
    await others.claimFound({ where: [is('a', 'y')] }, [1], 'A related path is selected by its values.')
  }),
  it('has no value of an earlier state', async ({ store, path }) => {
    await put(store, path(1), indexed(INDEX, { a: 'old', b: 1 }))
    const contents = [indexed(INDEX, { a: 'new' }), plain({ a: 'newer' }), text('"no object"')]
    for (const [at, expected] of ['new', 'newer', null].entries()) {
      await put(store, path(1), contents[at]!)
      const { indexed: kept } = await readResource(store, path(1))
      const { a = null, b = null } = kept?.values ?? { a: expected }
      claimEqual([a, b], [expected, null], 'A state has the values of the state before.')
    }
  }),
  it('lists by a query the current state of each member, with its content, as a read gives it', async (bench) => {
    const { store, collection, path } = bench
    const list = listUnder(store, collection, INDEX)
    await list.fill([{ a: 1 }, { a: 2 }, { a: 3 }])
    await put(store, path(2), indexed(INDEX, { a: 5, b: 'changed' }))
    await remove(store, path(1))
    const { items } = await list.ask({ order: ['a'] })
    claimEqual(items.map(nameOf), ['3', '2'], 'A change moves a member to its new place at once.')
    for (const item of items) {
      const state = claimResource(await store.read(item.path), 'A listed member was not found.')
      claimEqual(factsOf(item), factsOf(state), 'A list with a query and a read tell different facts.')
    }
    const changed = plain({ a: 5, b: 'changed' })
    await claimContent(items[1], changed, 'A list with a query shows content that was replaced.')
  }),
  it('selects among the direct members of one collection only', { needs: ['paths'] }, async ({ store, collection }) => {
    const own = [`${collection}/1`, `${collection}/x`]
    const others = [
      ...[collection, `${collection}/`, `${collection}/1/parts`, `${collection}/1/parts/2`, `${collection}s/1`],
      ...[`${collection}//4`, `/x${collection}/3`, `${collection.toUpperCase()}/5`, '/b', 'queue/7'],
    ]
    for (const path of [...own, ...others]) await put(store, path, indexed(INDEX, { a: 'same' }))
    const claimSame = (of: string, expected: readonly string[], sentence: string) =>
      listUnder(store, of, INDEX).claimFound({ where: [is('a', 'same')] }, expected, sentence)
    await claimSame(collection, ['1', 'x'], 'Only direct members with a name are selected.')
    await claimSame(`${collection}/1`, ['parts'], 'A member has members of its own.')
    await claimSame('queue', ['7'], 'A queue is a collection like any other.')
    await claimSame('/none', [], 'A collection without members has none that match.')
    claimEqual((await listAll(store, collection, 1)).length, 2, 'A list without a query shows all members.')
  }),
]
