import { isResource } from '../../stores/rules.ts'
import type { RemoveOptions } from '../../stores/types.ts'
import { create, factsOf, nameOf, pathsOf, put, race, remove } from '../calls.ts'
import { claim, claimContent, claimEqual, claimResource, claimStored, claimTombstone } from '../claims.ts'
import { listAll } from '../lists.ts'
import { binary, createBytes, range, stall, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

export const durability: readonly Case[] = [
  it('has everything that was acknowledged after a sudden end, exactly as it was', async (bench) => {
    const { store, collection, path, content, keep, crash } = bench
    for (let name = 1; name <= 5; name++) await keep(name)
    await keep(2, 22)
    await remove(store, path(3))
    const before = await listAll(store, collection, 10)
    const reopened = await crash()
    const after = await listAll(reopened, collection, 10)
    claimEqual(after.map(factsOf), before.map(factsOf), 'After the end, the store has other states than before.')
    await claimStored(reopened, path(2), content(22, 2), 'Content has changed over the end.')
    claimEqual(await reopened.read(path(3)), undefined, 'What was removed is back after the end.')
  }),
  it('has tombstones, hidden resources and large content after a sudden end', {
    needs: ['contents', 'tombstones', 'hiding'],
  }, async ({ store, path, crash }) => {
    const bytes = createBytes(1_200_000, 1)
    await put(store, path(1), binary(stream(bytes, 65_536)))
    for (const name of [2, 3]) await put(store, path(name), text('gone'))
    await remove(store, path(2), 'tombstone')
    await remove(store, path(3), 'hide')
    const tombstone = await store.read(path(2))
    const reopened = await crash()
    await claimStored(reopened, path(1), binary(bytes), 'Large content has changed over the end.')
    claimEqual(await reopened.read(path(2)), tombstone, 'A tombstone has changed over the end.')
    const hidden = await reopened.read(path(3), { hidden: true })
    await claimContent(hidden, text('gone'), 'A hidden resource has changed over the end.')
    claim(!isResource(await reopened.read(path(3))), 'A hidden resource shows after the end.')
  }),
  it('never uses a version again after a sudden end', async ({ store, path, content, keep, crash }) => {
    const seen = new Set<string>()
    for (let i = 0; i < 5; i++) seen.add((await keep(1)).version)
    await remove(store, path(1))
    const reopened = await crash()
    for (let i = 0; i < 5; i++) seen.add((await put(reopened, path(1), content(1, 1))).version)
    claimEqual(seen.size, 10, 'A version of before the end was used again after it.')
  }),
  it('never assigns a name again after a sudden end', async ({ store, collection, path, content, keep, crash }) => {
    const used = new Set<number>()
    for (let i = 0; i < 4; i++) {
      const member = await create(store, collection, (name) => content(1, name))
      used.add(Number(nameOf(member)))
      await remove(store, member.path)
    }
    const written = Math.max(...used) + 3
    await keep(written, 1)
    await remove(store, path(written))
    used.add(written)
    const reopened = await crash()
    for (let i = 0; i < 8; i++) {
      const id = Number(nameOf(await create(reopened, collection, (name) => content(1, name))))
      claim(!used.has(id), `The name ${id} was assigned again after the end.`)
      used.add(id)
    }
  }),
  it('has nothing of a write that was under way at a sudden end', { needs: ['contents'] }, async (bench) => {
    const { store, collection, path, crash } = bench
    await put(store, path(1), text('before'))
    const sources = [1, 2, 3].map((seed) => stall(createBytes(1_500_000, seed)))
    const calls = [
      (async () => store.write(path(1), binary(sources[0]!.body), { expect: 'any' }))(),
      (async () => store.write(path(2), binary(sources[1]!.body), { expect: 'any' }))(),
      (async () => store.create(collection, binary(sources[2]!.body)))(),
    ]
    for (const call of calls) call.catch(() => {})
    await Promise.all(sources.map((source) => source.reached))
    const reopened = await crash()
    await claimStored(reopened, path(1), text('before'), 'A write that was under way has left a part.')
    const members = await listAll(reopened, collection, 5)
    claimEqual(pathsOf(members), [path(1)], 'A write that was under way has left a member.')
    await put(reopened, path(2), text('after'))
    await claimStored(reopened, path(2), text('after'), 'A write that was under way is in the way.')
    // Without `crash` the writes still go on. They end here: a FileHandle that the garbage collector closes is an uncaught
    // exception in Node 26.
    for (const source of sources) source.fail()
  }),
  it('shows at once in every process what one of them has written', async (bench) => {
    const { store, collection, path, content, reopen } = bench
    const other = await reopen()
    for (let i = 1; i <= 10; i++) {
      const [writer, reader] = i % 2 === 0 ? [store, other] : [other, store]
      const { version } = await put(writer, path(1), content(i, 1))
      const state = claimResource(await reader.read(path(1)), 'Another process does not find the resource.')
      claimEqual(state.version, version, 'Another process finds an older state.')
      await claimContent(state, content(i, 1), 'Another process finds older content.')
      const { items } = await reader.list(collection, { limit: 5 })
      claimEqual(items[0]?.version, version, 'Another process lists an older state.')
    }
    await remove(store, path(1))
    claim(!isResource(await other.read(path(1))), 'Another process finds what was removed.')
  }),
  it('shows in every process a page as it is, whatever another process does to its members', async (bench) => {
    const { store, collection, path, keep, modes, reopen } = bench
    // One process only reads: what it has kept of a page is renewed by no write of its own.
    const reader = await reopen()
    const versions = new Map<number, string>()
    const write = async (name: number, seed: number): Promise<void> => {
      versions.set(name, (await keep(name, seed)).version)
    }
    const removeMember = async (name: number, mode: RemoveOptions['mode']): Promise<void> => {
      await remove(store, path(name), mode)
      versions.delete(name)
    }
    const claimPages = async (change: string): Promise<void> => {
      const names = [...versions.keys()].sort((a, b) => a - b)
      const expected = names.map((name) => [path(name), versions.get(name)])
      // Read repeatedly: a store may keep what is asked for a second time.
      for (const limit of [2, 2, 2, 10, 10, 10]) {
        const found = (await listAll(reader, collection, limit)).map((item) => [item.path, item.version])
        claimEqual(found, expected, `Another process lists a page of before ${change}.`)
      }
    }
    for (const name of [1, 2, 3, 5]) await write(name, name)
    await claimPages('the first members')
    for (const name of [1, 3, 5, 2]) {
      await write(name, 10 + name)
      await claimPages('a change')
    }
    await write(4, 4)
    await claimPages('a new member')
    for (const [index, mode] of modes.entries()) {
      await removeMember(index + 2, mode)
      await claimPages(`a removal (${mode})`)
      // As many members as before, and one of them another.
      await write(10 + index, index)
      await removeMember(index === 0 ? 1 : 9 + index, mode)
      await claimPages('a removal and a new member')
      await write(index + 2, 20)
      await claimPages('the return of a member')
    }
  }),
  it('remembers every tombstone after a sudden end', { needs: ['tombstones'] }, async (bench) => {
    const { store, path, keep, crash } = bench
    const names = range(1, 10)
    for (const name of names) await keep(name)
    for (const name of names) await remove(store, path(name), 'tombstone')
    const reopened = await crash()
    const sentence = 'A tombstone was forgotten over the end.'
    for (const name of names) claimTombstone(await reopened.read(path(name)), path(name), sentence)
  }),
  it('assigns no name twice among several processes', async ({ store, collection, content, reopen }) => {
    const stores = [store, await reopen(), await reopen()]
    const members = await race(stores, 45, (own) => create(own, collection, (name) => content(1, name)))
    claimEqual(new Set(pathsOf(members)).size, 45, 'Two processes assigned the same name.')
    claimEqual((await listAll(store, collection, 20)).length, 45, 'A member that one process created is missing.')
  }),
]
