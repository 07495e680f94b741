import { isHttpError } from '../../core/errors.ts'
import { create, created, factsOf, nameOf, put, remove, times } from '../calls.ts'
import { claim, claimContent, claimEqual, claimFails, claimResource, claimStored } from '../claims.ts'
import { binary, createBytes, interrupt, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

/** The value of a name that the store has assigned. */
function claimAssigned(state: { readonly path: string }, collection: string): number {
  const name = nameOf(state)
  claimEqual(state.path, `${collection}/${name}`, 'A new member stands in another collection.')
  claim(/^[1-9][0-9]*$/.test(name), `The name ${JSON.stringify(name)} is not a positive integer in decimal.`)
  claim(Number.isSafeInteger(Number(name)), `The name ${name} is not a safe integer.`)
  return Number(name)
}

export const creation: readonly Case[] = [
  it('assigns positive integers, each larger than the one before', async ({ store, collection, content }) => {
    let last = 0
    for (let i = 0; i < 8; i++) {
      const result = await store.create(collection, (name) => content(i, name))
      claimEqual(result.outcome, 'created', 'A creation creates.')
      const id = claimAssigned(created(result), collection)
      claim(id > last, `The name ${id} was assigned after ${last}.`)
      last = id
    }
  }),
  it('assigns different names to creations at the same time', async ({ store, collection, content }) => {
    const members = await times(40, () => create(store, collection, (name) => content(1, name)))
    const names = new Set(members.map((member) => claimAssigned(member, collection)))
    claimEqual(names.size, 40, 'A name was assigned twice.')
  }),
  it('never assigns a name that a client has written', async ({ store, collection, path, content, keep }) => {
    const first = claimAssigned(await create(store, collection, (name) => content(1, name)), collection)
    // The last one is lower than others: what is assigned next goes on behind the highest.
    const taken = [first + 1, first + 5, first + 20, first + 2]
    for (const id of taken) await keep(id, 99)
    for (let i = 0; i < 25; i++) {
      const id = claimAssigned(await create(store, collection, (name) => content(2, name)), collection)
      claim(!taken.includes(id), `The name ${id} was assigned although a client had written it.`)
    }
    for (const id of taken) await claimStored(store, path(id), content(99, id), 'A creation overwrote a resource.')
  }),
  it('never assigns a name again once its resource was removed', async (bench) => {
    const { modes, store, collection, path, content, keep } = bench
    const used = new Set<number>()
    for (const mode of modes) {
      for (let i = 0; i < 3; i++) {
        const member = await create(store, collection, (name) => content(1, name))
        const id = claimAssigned(member, collection)
        claim(!used.has(id), `The name ${id} was assigned again after removal (${mode}).`)
        used.add(id)
        const written = id + 2
        await keep(written, 1)
        used.add(written)
        await remove(store, path(written), mode)
        await remove(store, member.path, mode)
      }
    }
  }),
  it('writes nothing when the content cannot be made, and goes on working', async ({ store, collection, content }) => {
    const error = new Error('no content')
    const makeContent = () => {
      throw error
    }
    const creation = async () => store.create(collection, makeContent)
    const thrown = await claimFails(creation, 'The error of the function that makes the content was swallowed.')
    claim(thrown === error, 'The error of the function that makes the content was replaced by another one.')
    claimEqual((await store.list(collection, { limit: 10 })).items.length, 0, 'A failed creation left something.')
    await create(store, collection, (name) => content(1, name))
  }),
  it('takes content that does not depend on the name', { needs: ['contents'] }, async ({ store, collection }) => {
    const bytes = createBytes(200_000, 4)
    const small = await create(store, collection, text('note'))
    const large = await create(store, collection, binary(stream(bytes, 40_000)))
    await claimStored(store, small.path, text('note'), 'The member has other content.')
    await claimStored(store, large.path, binary(bytes), 'The streamed member has other content.')
  }),
  it('does not overwrite a name that a client writes while the content of the creation comes in', {
    needs: ['contents'],
  }, async ({ store, collection, path }) => {
    for (const isMade of [false, true]) {
      const last = claimAssigned(await create(store, collection, text('first')), collection)
      const taken = [last + 1, last + 2, last + 3]
      const bytes = createBytes(200, 1)
      const content = binary(
        interrupt(bytes, async () => {
          for (const id of taken) await put(store, path(id), text('client'))
        }),
      )
      const member = await create(store, collection, isMade ? () => content : content)
      await claimStored(store, member.path, binary(bytes), 'The member has other content.')
      for (const id of taken)
        await claimStored(store, path(id), text('client'), 'A creation overwrote what a client wrote.')
    }
  }),
  it('does not assign a name that a client writes and removes while the content of the creation comes in', {
    needs: ['contents'],
  }, async ({ modes, store, collection, path }) => {
    for (const mode of modes) {
      const last = claimAssigned(await create(store, collection, text('first')), collection)
      const written = path(last + 1)
      const body = interrupt(createBytes(200, 1), async () => {
        await put(store, written, text('client'))
        await remove(store, written, mode)
      })
      const member = await create(store, collection, binary(body))
      claim(member.path !== written, `The name ${last + 1} was assigned although a client had removed it (${mode}).`)
      const hidden = mode === 'hide' ? text('client') : undefined
      if (hidden) await claimContent(await store.read(written, { hidden: true }), hidden, 'What is hidden is gone.')
    }
  }),
  it('counts every collection on its own, and counts past names that are not integers', {
    needs: ['paths'],
  }, async ({ store, collection }) => {
    const other = `${collection}/1/parts`
    for (const name of ['007', 'x', '1.5', '-3', '99999999999999999999'])
      await put(store, `${collection}/${name}`, text(name))
    const first = claimAssigned(await create(store, collection, text('a')), collection)
    const second = claimAssigned(await create(store, collection, text('b')), collection)
    claim(second > first, `The name ${second} was assigned after ${first}.`)
    claimAssigned(await create(store, other, text('c')), other)
    claimAssigned(await create(store, '', text('d')), '')
  }),
  it('fails with 507 rather than assign a name beyond the safe integers', { needs: ['paths'] }, async (bench) => {
    const { store, collection, path } = bench
    await put(store, path(Number.MAX_SAFE_INTEGER - 1), text('last but one'))
    const last = await create(store, collection, text('last')).catch((error: unknown) => error)
    if (!(last instanceof Error)) claimAssigned(claimResource(last as never, 'No member.'), collection)
    const creation = async () => store.create(collection, text('one too many'))
    const error = await claimFails(creation, 'A name was assigned although no safe integer is left.')
    claim(isHttpError(error) && error.status === 507, 'Out of names is not reported as HttpError 507.')
    const { items } = await store.list(collection, { limit: 10 })
    claim(items.length <= 2, 'A creation that failed has left something.')
  }),
  it('returns from a creation the state that is read afterwards', async ({ store, collection, path, content }) => {
    const first = claimAssigned(await create(store, collection, (name) => content(7, name)), collection)
    // Read repeatedly: a store may keep that nothing is there.
    for (let i = 0; i < 30; i++) await store.read(path(first + 1 + (i % 10)))
    const member = await create(store, collection, (name) => content(7, name))
    const found = claimResource(await store.read(member.path), 'A new member was not found.')
    claimEqual(factsOf(found), factsOf(member), 'The result of a creation and the next read tell different facts.')
    const sentence = 'The result of a creation has other content than was given.'
    await claimContent(member, content(7, nameOf(member)), sentence)
  }),
  it('makes content with the name that the member then has', async ({ store, collection, content }) => {
    for (let i = 0; i < 4; i++) {
      const given: string[] = []
      const member = await create(store, collection, (name) => {
        given.push(name)
        return content(Number(name) % 100, name)
      })
      const name = nameOf(member)
      claimEqual(given.at(-1), name, 'The name that content was made with is not the name of the member.')
      const sentence = 'The member has other content than was made with its name.'
      await claimStored(store, member.path, content(Number(name) % 100, name), sentence)
    }
  }),
]
