import { isHttpError } from '../../core/errors.ts'
import { create, factsOf, nameOf, pathsOf, put, remove } from '../calls.ts'
import { claim, claimContent, claimEqual, claimResource } from '../claims.ts'
import { BEHIND, claimUntold, listAll, walk } from '../lists.ts'
import { binary, createBytes, named, range, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

export const listing: readonly Case[] = [
  it('finds no members where there are none', async ({ store, collection }) => {
    const page = await store.list(collection, { limit: 10 })
    claimEqual([...page.items], [], 'Nothing was written, so nothing is listed.')
    claimEqual(page.next, undefined, 'An empty collection has no next page.')
  }),
  it('lists integers by value', async ({ store, collection, path, keep }) => {
    for (const name of [10, 9, 100, 2, 1, 21, 20, 3, 1000, 11]) await keep(name)
    const { items } = await store.list(collection, { limit: 100 })
    const expected = [1, 2, 3, 9, 10, 11, 20, 21, 100, 1000].map(path)
    claimEqual(pathsOf(items), expected, 'Integers are listed by value.')
  }),
  it('lists the current state of each member, with its content', async ({ store, collection, path, content, keep }) => {
    for (const name of [1, 2, 3]) await keep(name)
    await store.list(collection, { limit: 10 })
    await keep(2, 22)
    await remove(store, path(3))
    const { items } = await store.list(collection, { limit: 10 })
    claimEqual(pathsOf(items), [path(1), path(2)], 'What was removed is not listed, all else is.')
    for (const item of items) {
      const state = claimResource(await store.read(item.path), 'A listed member was not found.')
      claimEqual(factsOf(item), factsOf(state), 'A listing and a read tell different facts.')
    }
    await claimContent(items[1], content(22, 2), 'A listing shows content that was replaced.')
  }),
  it('lists members that the store has named', async ({ store, collection, content }) => {
    const paths: string[] = []
    for (let i = 0; i < 12; i++) paths.push((await create(store, collection, (name) => content(i, name))).path)
    const members = await listAll(store, collection, 5)
    claimEqual(pathsOf(members), paths, 'Created members are listed in the order of their names.')
  }),
  it('gives pages of at most the limit, and a cursor exactly while there is more', async (bench) => {
    const { store, collection, path, keep } = bench
    for (let name = 1; name <= 12; name++) await keep(name)
    for (const limit of [1, 2, 3, 4, 5, 6, 11, 12, 13, 1000]) {
      const sizes: number[] = []
      const paths: string[] = []
      for await (const { items } of walk((after) => store.list(collection, { limit, after }))) {
        sizes.push(items.length)
        paths.push(...pathsOf(items))
      }
      const rest = 12 % limit
      const expected = [...Array<number>(Math.floor(12 / limit)).fill(limit), ...(rest > 0 ? [rest] : [])]
      const sentence = `12 members in pages of ${limit} make pages of these sizes, the last one not empty.`
      claimEqual(sizes, expected, sentence)
      claimEqual(paths, range(1, 12).map(path), 'The pages miss or repeat a member.')
    }
  }),
  it('goes on after a cursor whose member is gone', async ({ store, collection, path, keep }) => {
    for (let name = 1; name <= 6; name++) await keep(name)
    const first = await store.list(collection, { limit: 3 })
    for (const name of [2, 3, 4]) await remove(store, path(name))
    const second = await store.list(collection, { limit: 3, after: first.next })
    claimEqual(pathsOf(second.items), [path(5), path(6)], 'The next page begins at another member.')
  }),
  it('names in a cursor the last item of its page, and no member behind it', async (bench) => {
    const { store, collection, path, keep } = bench
    for (const name of [1, 2, BEHIND]) await keep(name, 1)
    const { next } = await store.list(collection, { limit: 2 })
    claimUntold(next)
    await keep(3)
    const { items } = await store.list(collection, { limit: 2, after: next })
    const sentence = 'A cursor names the last item of its page: what is written right behind that begins the next page.'
    claimEqual(pathsOf(items), [path(3), path(BEHIND)], sentence)
  }),
  it('answers any cursor, also one that it never gave, with a page or an HttpError below 500', async (bench) => {
    const { store, collection, keep } = bench
    for (const name of [1, 2, 3]) await keep(name)
    const cursors = [
      ...['', '0', '2', '-1', '1e3', 'nonsense', '\u0000', '%', "' OR 1=1 --", '🜚'],
      ...['9'.repeat(40), 'x'.repeat(4000)],
    ]
    for (const after of cursors) {
      try {
        const { items } = await store.list(collection, { limit: 2, after })
        claim(items.length <= 2, 'A page has more items than its limit.')
      } catch (error) {
        const isRefused = isHttpError(error) && error.status < 500
        claim(isRefused, `The cursor ${JSON.stringify(after)} makes the store fail with ${String(error)}.`)
      }
    }
  }),
  it('lists direct members only, each in its own collection', { needs: ['paths'] }, async ({ store, collection }) => {
    const paths = [
      ...[collection, `${collection}/`, `${collection}/1`, `${collection}/1/parts`, `${collection}/1/parts/2`],
      ...[`${collection}/a b`, `${collection}s/1`, `${collection}%2F2`, `/x${collection}/3`, `${collection}//4`],
    ]
    for (const path of paths) await put(store, path, text(path))
    const pathsIn = async (of: string) => pathsOf(await listAll(store, of, 2))
    const members = await pathsIn(collection)
    claimEqual(members, [`${collection}/1`, `${collection}/a b`], 'Only direct members with a name are listed.')
    claimEqual(await pathsIn(`${collection}/1`), [`${collection}/1/parts`], 'A member has members of its own.')
    claimEqual(await pathsIn(`${collection}/1/parts`), [`${collection}/1/parts/2`], 'A nested collection is listed.')
    const longer = `${collection}s`
    claimEqual(await pathsIn(longer), [`${longer}/1`], 'A collection with a longer name is another one.')
  }),
  it('lists the members of the root, and the queues of the service, which have no leading slash', {
    needs: ['paths'],
  }, async ({ store }) => {
    for (const path of ['/b', '/1', '/', 'queue/7', 'queue/x', 'alone']) await put(store, path, text(path))
    const root = await listAll(store, '', 1)
    claimEqual(pathsOf(root), ['/1', '/b'], 'The root has exactly the paths with one slash and a name.')
    const queue = await listAll(store, 'queue', 1)
    claimEqual(pathsOf(queue), ['queue/7', 'queue/x'], 'A queue is a collection like any other.')
  }),
  it('lists every name once, integers first, in the same order every time', { needs: ['paths'] }, async (bench) => {
    const { store, collection, path } = bench
    const names = [
      ...['7', '10', '007', '0', '1.0', '-1', 'a', 'A', 'ä', 'z', 'Z', '~', '_', '%', '%%', 'a%', 'a_', 'a b', ' '],
      ...["'", '"', '\\', '🜚', '\uffee', '世界', 'é', 'e\u0301', '\u0000', '9007199254740991', '9007199254740992'],
      ...['__proto__', 'constructor', 'x'.repeat(200)],
    ]
    for (const name of names) await put(store, path(name), text(name))
    let before: string[] | undefined
    for (const limit of [1, 4, 7, 100]) {
      const found = (await listAll(store, collection, limit)).map(nameOf)
      claimEqual([...found].sort(), [...names].sort(), `In pages of ${limit}, a name is missing or repeated.`)
      const integers = ['0', '7', '10', '9007199254740991']
      claimEqual(found.slice(0, 4), integers, 'Integers in their one spelling come first.')
      claimEqual(found, before ?? found, 'The order changed from one walk to the next.')
      before = found
    }
  }),
  it('gives another page object once anything on the page has changed', async (bench) => {
    const { store, collection, path, keep, content, modes } = bench
    const changes: readonly (() => unknown)[] = [
      () => keep(1, 11),
      () => keep(5),
      () => create(store, collection, (name) => content(6, name)),
      ...modes.map((mode, at) => () => remove(store, path(at + 2), mode)),
    ]
    for (const name of [1, 2, 3, 4]) await keep(name)
    for (const change of changes) {
      let before: unknown
      // Pages that are read repeatedly may be cached.
      for (let i = 0; i < 4; i++) before = await store.list(collection, { limit: 10 })
      await change()
      const after = await store.list(collection, { limit: 10 })
      const sentence = 'A page has changed, and is still the same object, on which callers keep what they derive.'
      claim(after !== before, sentence)
    }
  }),
  it('lists members with large content, which can be read from there', { needs: ['contents'] }, async (bench) => {
    const { store, collection, path } = bench
    const bodies = [createBytes(900_000, 1), createBytes(20, 2), createBytes(1_100_000, 3)]
    for (const [name, bytes] of named(bodies)) await put(store, path(name), binary(stream(bytes, 65_536)))
    const { items } = await store.list(collection, { limit: 10 })
    for (const [index, bytes] of bodies.entries())
      await claimContent(items[index], binary(bytes), 'A listed member has other content.')
  }),
]
