import { setTimeout as sleep } from 'node:timers/promises'
import { isResource } from '../../stores/rules.ts'
import type { Content, NewState, RelatedWrite } from '../../stores/types.ts'
import { created, nameOf, put, race, remove, written } from '../calls.ts'
import { claim, claimContent, claimEqual, claimFails, claimOneWinner, claimResource, claimStored } from '../claims.ts'
import { absent, binary, LONG_RETENTIONS, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

const RACERS = 16

const bodies = (): Content['body'][] => ['own', stream(Buffer.alloc(100_000), 60_000)]

export const absentRelated: readonly Case[] = [
  it('writes a related path that must be absent where it never was, was removed or is hidden', async (bench) => {
    const { store, path, collection, modes } = bench
    for (const [index, mode] of [undefined, ...modes].entries()) {
      const records = [path(`record-${index}`), path(`other-${index}`)] as const
      for (const record of mode === undefined ? [] : records) {
        await put(store, record, text('old'))
        await remove(store, record, mode)
      }
      const sentence = `The related path was absent (${mode ?? 'never there'}), and the`
      const result = await store.write(path(index), text('own'), { expect: 'any', related: [absent(records[0])] })
      written(result, `${sentence} write was refused.`)
      const { outcome } = await store.create(collection, text('own'), { related: () => [absent(records[1])] })
      claim(outcome === 'created', `${sentence} creation was refused.`)
      for (const record of records)
        await claimStored(store, record, text('record'), 'The related path has other content.')
    }
  }),
  it('writes nothing at all while a related path that must be absent is there, and says which with its state', async (bench) => {
    const { store, path } = bench
    const before = await put(store, path(1), text('before'))
    await put(store, path('record'), text('winner'))
    const other = { path: path(2), content: text('other') }
    const related = [other, absent(path('free')), absent(path('record'), 'loser'), absent(path('later'))]
    for (const expect of ['any', 'present', { version: before.version }, { version: 'nonesuch' }] as const) {
      for (const body of bodies()) {
        const result = await store.write(path(1), text(body), { expect, related })
        claim(result.outcome === 'conflict', 'A write went on although a related path was not absent.')
        const { current, related: winner } = result
        claim(winner !== undefined, 'The conflict does not say which related path was not absent.')
        claimEqual(winner.path, path('record'), 'The conflict names another related path.')
        await claimContent(winner, text('winner'), 'The conflict gives another state of the related path.')
        const { version } = claimResource(current, 'The conflict does not give the state of the path itself.')
        claimEqual(version, before.version, 'The conflict gives another state of the path itself.')
      }
    }
    await claimStored(store, path(1), text('before'), 'A refused write has changed the path itself.')
    for (const name of [2, 'free', 'later'])
      claimEqual(await store.read(path(name)), undefined, 'A refused write has left a related path.')
    await claimStored(store, path('record'), text('winner'), 'A refused write has changed a related path.')
  }),
  it('leaves related paths that must be absent alone when the path itself meets a conflict', async (bench) => {
    const { store, path } = bench
    const write = { expect: { version: 'nonesuch' }, related: [absent(path('record'))] }
    const result = await store.write(path(1), text('own'), write)
    claim(result.outcome === 'conflict', 'The version was none of this path, and the write went on.')
    claimEqual(result.related, undefined, 'The conflict names a related path that was absent.')
    claimEqual(await store.read(path('record')), undefined, 'A refused write has left a related path.')
  }),
  it('creates nothing while a related path that must be absent is there, and says which with its state', async (bench) => {
    const { store, path, collection } = bench
    await put(store, '/records/1', text('winner'))
    for (const body of bodies()) {
      const file = (name: string) => ({ path: `${path(name)}/file`, content: text('file') })
      const related = (name: string) => [file(name), absent('/records/1', 'loser')]
      const result = await store.create(collection, binary(body), { related })
      claim(result.outcome === 'conflict', 'A creation went on although a related path was not absent.')
      claimEqual(result.related?.path, '/records/1', 'The conflict does not name the related path.')
      await claimContent(result.related, text('winner'), 'The conflict gives another state of the related path.')
    }
    claimEqual((await store.list(collection, { limit: 5 })).items, [], 'A refused creation has left a member.')
    const member = created(await store.create(collection, text('own'), { related: () => [absent('/records/2')] }))
    claim(isResource(await store.read(member.path)), 'A creation whose related path was absent made nothing.')
    await claimStored(store, '/records/2', text('record'), 'The related path has other content.')
  }),
  it('keeps a related path for its retention, and for good once it is written without one', async (bench) => {
    const { store, path, collection } = bench
    const record = '/records/kept'
    const related = [{ ...absent(record), retention: 20_000 }]
    written(await store.write(path(1), text('own'), { expect: 'any', related }), 'The related path was absent.')
    const brief = [{ ...absent('/records/brief'), retention: 1 }]
    written(await store.write(path(2), text('own'), { expect: 'any', related: brief }), 'The related path was absent.')
    await put(store, '/records/brief', text('kept'))
    await sleep(30)
    await claimStored(store, '/records/brief', text('kept'), 'A path went after a retention that it had before.')
    await remove(store, '/records/brief')
    for (const [index, retention] of LONG_RETENTIONS.entries()) {
      const long = path(`long-${index}`)
      const held = [{ ...absent(long), retention }]
      written(await store.write(path(3), text('own'), { expect: 'any', related: held }), 'The related path was absent.')
      await claimStored(store, long, text('record'), `A related path with a retention of ${retention} ms is not there.`)
    }
    for (const expect of ['any', 'present'] as const) {
      const result = await store.write(path(1), text('again'), { expect, related })
      claim(result.outcome === 'conflict', 'A related path was absent although its retention was not over.')
      await claimContent(result.related, text('record'), 'The conflict gives another state of the related path.')
    }
    await claimStored(store, path(1), text('own'), 'A refused write has changed the path itself.')
    const refused = await store.create(collection, text('own'), { related: () => related })
    claim(refused.outcome === 'conflict', 'A creation went on although a related path was not absent.')
    await put(store, record, text('kept'))
    await claimStored(store, record, text('kept'), 'The related path could not be written anew.')
    const { items } = await store.list('/records', { limit: 5 })
    claimEqual(items.length, 1, 'A path that was written without a retention is not listed.')
    await remove(store, record)
    written(await store.write(path(1), text('anew'), { expect: 'any', related }), 'The related path was removed.')
    await claimStored(store, record, text('record'), 'The related path has other content.')
  }),
  it('tells related writes the names that the new state then has', async ({ store, path, collection }) => {
    let given: NewState | undefined
    let givenName = ''
    const relatedTo = (state: NewState): readonly RelatedWrite[] => {
      given = state
      return [{ path: path('record'), content: text(state.version) }]
    }
    const check = async (version: string, entityTag: string | undefined) => {
      claimEqual(given?.version, version, 'The version that was given is not that of the new state.')
      claimEqual(given?.entityTag, entityTag, 'The entity tag that was given is not that of the new state.')
      await claimStored(store, path('record'), text(version), 'The related path has other content.')
    }
    for (const body of bodies()) {
      const own = written(await store.write(path(1), binary(body), { expect: 'any', relatedTo }), 'It was refused.')
      await check(own.version, own.entityTag)
    }
    for (const body of bodies()) {
      const related = (name: string, state: NewState | undefined) => {
        givenName = name
        claim(state !== undefined, 'A creation tells related writes nothing of the new state.')
        return relatedTo(state)
      }
      const member = created(await store.create(collection, binary(body), { related }))
      claimEqual(nameOf(member), givenName, 'The name that was given is not the name of the member.')
      await check(member.version, member.entityTag)
    }
  }),
  it('writes nothing when related writes cannot be made, and passes the error on', async (bench) => {
    const { store, path, collection } = bench
    const error = new Error('no related writes')
    const fail = () => {
      throw error
    }
    const calls = [
      async () => store.write(path(1), text('own'), { expect: 'any', relatedTo: fail }),
      async () => store.create(collection, text('own'), { related: fail }),
    ]
    for (const call of calls) {
      const thrown = await claimFails(call, 'The error of the function that makes related writes was swallowed.')
      claim(thrown === error, 'The error of the function that makes related writes was replaced by another one.')
    }
    claimEqual((await store.list(collection, { limit: 5 })).items, [], 'A call that failed has left something.')
  }),
  it('lets exactly one of many steps win that expect the same related path to be absent', async (bench) => {
    const { store, path, collection, reopen } = bench
    const stores = [store, await reopen()]
    for (let round = 1; round <= 4; round++) {
      const record = `/records/${round}`
      const results = await race(stores, RACERS, (own, i) => {
        const content = text(`${i}`)
        const related = [absent(record, `${i}`)]
        const isCreation = round === 1 ? i % 4 < 2 : round === 2
        if (isCreation) return own.create(collection, content, { related: () => related })
        return own.write(path(`${round}-${i}`), content, { expect: 'any', related })
      })
      const sentence = 'Of the steps that expected the same path to be absent, exactly one may happen.'
      const winner = claimOneWinner(results, sentence)
      for (const result of results) {
        if (result.outcome !== 'conflict') continue
        claim(result.related !== undefined, 'A step that lost does not say to which related path.')
        await claimContent(result.related, text(`${winner}`), 'A step that lost was not shown the winner.')
      }
      // Once all of them create, twice all of them write, and once both meet.
      const { items } = await store.list(collection, { limit: 50 })
      claimEqual(items.length, round, 'A step that lost has left something.')
    }
  }),
  it('writes nothing at all while a path that is related to the new state must be absent and is there', async (bench) => {
    const { store, path } = bench
    await put(store, path('record'), text('winner'))
    const relatedTo = () => [{ path: path(2), content: text('other') }, absent(path('record'), 'loser')]
    for (const body of bodies()) {
      const result = await store.write(path(1), text(body), { expect: 'any', relatedTo })
      claim(result.outcome === 'conflict', 'A write went on although a related path was not absent.')
      claimEqual(result.related?.path, path('record'), 'The conflict does not name the related path.')
    }
    for (const name of [1, 2])
      claimEqual(await store.read(path(name)), undefined, 'A refused write has left something.')
    await claimStored(store, path('record'), text('winner'), 'A refused write has changed a related path.')
  }),
]
