import type { Condition, IndexedValue, IndexedValues } from '../../stores/lists.ts'
import { claimContent, claimEqual, claimResource } from '../claims.ts'
import { ask, claimFound, createIndex, fill, indexed, plain } from '../query-samples.ts'
import { create, listAll, nameOf, put, text } from '../samples.ts'
import type { Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const INDEX = createIndex('selection', ['a', 'b'])

const is = (property: string, ...values: readonly IndexedValue[]): Condition => ({ property, operator: 'in', values })

export const selection: readonly Case[] = [
  {
    title: 'selects the members that meet all conditions, several on one property included',
    needs: NEEDS,
    async run({ store, collection }) {
      await fill(
        store,
        collection,
        INDEX,
        Array.from({ length: 30 }, (_, i) => ({ a: i % 5, b: i })),
      )
      const from: Condition = { property: 'b', operator: 'gte', value: 5 }
      const to: Condition = { property: 'b', operator: 'lt', value: 16 }
      const claimAll = (where: readonly Condition[], expected: readonly number[]) =>
        claimFound(store, collection, INDEX, { where }, expected, 'All conditions must match.')
      await claimAll([is('a', 2), from], [8, 13, 18, 23, 28])
      await claimAll([from, to, is('a', 2, 3)], [8, 9, 13, 14])
      await claimAll([is('a', 2), is('a', 2, 3)], [3, 8, 13, 18, 23, 28])
      await claimAll([is('a', 2), is('a', 3)], [])
      await claimAll([{ property: 'a', operator: 'exists', value: false }, from], [])
      await claimAll(
        [{ property: 'a', operator: 'notIn', values: [0, 1, 2, 3] }, from, to, is('b', 9, 14, 19)],
        [10, 15],
      )
      await claimAll([{ property: 'b', operator: 'gt', value: 16 }, to], [])
    },
  },
  {
    title: 'selects by the properties of the scope as by others, alone, together and beside other conditions',
    needs: NEEDS,
    async run({ store, collection }) {
      const index = createIndex('scoped', ['owner', 'region', 'rank'], ['owner', 'region'])
      const owners = ['ann', 'ann ', 'Ann', 'an', 'annn', null, 7, '7', true]
      const members = owners.flatMap((owner, i) =>
        ['eu', 'us', null].map((region, j) => ({ owner, region, rank: i + j })),
      )
      await fill(store, collection, index, members)
      const claimScope = (where: readonly Condition[], isMatch: (member: IndexedValues) => boolean) => {
        const expected = members.flatMap((member, at) => (isMatch(member) ? [at + 1] : []))
        const sentence = 'Properties of the scope are compared by equality, all together.'
        return claimFound(store, collection, index, { where }, expected, sentence)
      }
      for (const owner of ['ann', 'Ann', 7, '7', true]) {
        await claimScope([is('owner', owner)], (member) => member['owner'] === owner)
        await claimScope(
          [is('region', 'eu'), is('owner', owner)],
          (member) => member['owner'] === owner && member['region'] === 'eu',
        )
      }
      await claimScope(
        [is('owner', 'an', 'ann', 7), is('region', 'eu', 'us'), { property: 'rank', operator: 'lte', value: 3 }],
        ({ owner, region, rank }) =>
          ['an', 'ann', 7].includes(owner as string) && region !== null && (rank as number) <= 3,
      )
      await claimScope([is('owner', 'ann'), is('owner', 'an')], () => false)
      await claimScope(
        [is('region', 'us'), { property: 'owner', operator: 'exists', value: false }],
        ({ owner, region }) => owner === null && region === 'us',
      )
    },
  },
  {
    title: 'takes any text for the name of a property and for a value',
    needs: NEEDS,
    async run({ store, collection }) {
      const texts = [
        "'",
        '"',
        "x'); DROP TABLE x; --",
        '$1',
        '?',
        '%s',
        '\\',
        'a.b',
        'a b',
        'é',
        '🜚',
        '__proto__',
        'toString',
      ]
      for (const property of texts) {
        const index = createIndex(`names-${texts.indexOf(property)}`, [property])
        const own = `${collection}-${texts.indexOf(property)}`
        await fill(
          store,
          own,
          index,
          ['x', ...texts].map((value) => Object.fromEntries([[property, value]])),
        )
        await put(store, `${own}/99`, indexed(index, {}))
        const sentence = `The property ${JSON.stringify(property)} is a name like any other.`
        for (const [at, value] of texts.entries())
          await claimFound(store, own, index, { where: [is(property, value)], order: [property] }, [at + 2], sentence)
        await claimFound(store, own, index, { where: [{ property, operator: 'exists', value: false }] }, [99], sentence)
      }
    },
  },
  {
    title: 'selects and orders by each of sixteen properties',
    needs: NEEDS,
    async run({ store, collection }) {
      const properties = Array.from({ length: 16 }, (_, i) => `p${String(i).padStart(2, '0')}`)
      const index = createIndex('sixteen', properties)
      const member = (seed: number) => Object.fromEntries(properties.map((name, i) => [name, (seed * (i + 3)) % 17]))
      const members = Array.from({ length: 16 }, (_, i) => member(i + 1))
      await fill(store, collection, index, members)
      for (const property of properties) {
        const ordered = members
          .map((values, at) => ({ at: at + 1, value: values[property] as number }))
          .sort((a, b) => b.value - a.value || a.at - b.at)
        const above = ordered.filter(({ value }) => value > 8)
        const where: readonly Condition[] = [{ property, operator: 'gt', value: 8 }]
        const sentence = 'An index has up to 16 properties, each of which selects and orders.'
        const question = { where, order: [`-${property}`] }
        await claimFound(
          store,
          collection,
          index,
          question,
          above.map(({ at }) => at),
          sentence,
        )
      }
    },
  },
  {
    title: 'keeps the values that content was written with, and gives them back in all that it returns',
    needs: [...NEEDS, 'related', 'paths'],
    async run({ store, collection, path }) {
      const values = { a: 'x', b: 2 }
      const given = { a: 'x', b: 2 }
      const related = [{ path: '/others/1', content: indexed(INDEX, { a: 'y', b: null }) }]
      const result = await store.write(path(1), indexed(INDEX, given), { expect: 'any', related })
      given.a = 'changed by the caller afterwards'
      const member = await create(store, collection, () => indexed(INDEX, values))
      const page = await ask(store, collection, INDEX, {})
      const states = [
        ...(result.outcome === 'conflict' ? [] : [result.resource]),
        ...[member, await store.read(path(1)), await store.read(path(1), { metadataOnly: true }), ...page.items],
        ...(await store.list(collection, { limit: 5 })).items,
      ]
      claimEqual(states.length, 8, 'Two members were written.')
      for (const found of states) {
        const state = claimResource(found, 'The resource was not found.')
        claimEqual(state.indexed?.index.version, INDEX.version, 'A state has the version of the index of its values.')
        claimEqual({ ...state.indexed?.values }, values, 'A state has the values that it was written with.')
      }
      const other = claimResource(await store.read('/others/1'), 'The related path was not found.')
      const { a, b = null } = other.indexed?.values ?? {}
      claimEqual([a, b], ['y', null], 'A related state has the values that it was written with.')
      await claimFound(
        store,
        '/others',
        INDEX,
        { where: [is('a', 'y')] },
        [1],
        'A related path is selected by its values.',
      )
    },
  },
  {
    title: 'has no value of an earlier state',
    needs: NEEDS,
    async run({ store, path }) {
      await put(store, path(1), indexed(INDEX, { a: 'old', b: 1 }))
      const contents = [indexed(INDEX, { a: 'new' }), plain({ a: 'newer' }), text('"no object"')]
      for (const [at, expected] of ['new', 'newer', null].entries()) {
        await put(store, path(1), contents[at]!)
        const { indexed: kept } = claimResource(await store.read(path(1)), 'The resource was not found.')
        const { a = null, b = null } = kept?.values ?? { a: expected }
        claimEqual([a, b], [expected, null], 'A state has the values of the state before.')
      }
    },
  },
  {
    title: 'lists by a query the current state of each member, with its content, as a read gives it',
    needs: NEEDS,
    async run({ store, collection, path }) {
      await fill(store, collection, INDEX, [{ a: 1 }, { a: 2 }, { a: 3 }])
      await put(store, path(2), indexed(INDEX, { a: 5, b: 'changed' }))
      await store.remove(path(1), { expect: 'any', mode: 'erase' })
      const { items } = await ask(store, collection, INDEX, { order: ['a'] })
      claimEqual(items.map(nameOf), ['3', '2'], 'A change moves a member to its new place at once.')
      for (const item of items) {
        const { body: _, ...expected } = claimResource(await store.read(item.path), 'A listed member was not found.')
        const { body: __, ...facts } = item
        claimEqual(facts, expected, 'A list with a query and a read tell different facts.')
      }
      await claimContent(
        items[1],
        plain({ a: 5, b: 'changed' }),
        'A list with a query shows content that was replaced.',
      )
    },
  },
  {
    title: 'selects among the direct members of one collection only',
    needs: [...NEEDS, 'paths'],
    async run({ store, collection }) {
      const own = [`${collection}/1`, `${collection}/x`]
      const others = [
        ...[collection, `${collection}/`, `${collection}/1/parts`, `${collection}/1/parts/2`, `${collection}s/1`],
        ...[`${collection}//4`, `/x${collection}/3`, `${collection.toUpperCase()}/5`, '/b', 'queue/7'],
      ]
      for (const path of [...own, ...others]) await put(store, path, indexed(INDEX, { a: 'same' }))
      const where = [is('a', 'same')]
      await claimFound(store, collection, INDEX, { where }, ['1', 'x'], 'Only direct members with a name are selected.')
      await claimFound(store, `${collection}/1`, INDEX, { where }, ['parts'], 'A member has members of its own.')
      await claimFound(store, 'queue', INDEX, { where }, ['7'], 'A queue is a collection like any other.')
      await claimFound(store, '/none', INDEX, { where }, [], 'A collection without members has none that match.')
      claimEqual((await listAll(store, collection, 1)).length, 2, 'A list without a query shows all members.')
    },
  },
]
