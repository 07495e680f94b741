import { isLargeBody } from '../../stores/rules.ts'
import type { StagedBody } from '../../stores/types.ts'
import { created, pathsOf, put, readResource, remove, stage, written } from '../calls.ts'
import { claim, claimContent, claimEqual, claimFails, claimSettles, claimStored, readRange } from '../claims.ts'
import { listAll } from '../lists.ts'
import { binary, createBytes, interrupt, stall, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

export const isolation: readonly Case[] = [
  it('shows nothing of a write before all of its content is there', async ({ store, path, collection }) => {
    const bytes = createBytes(400_000, 1)
    await put(store, path(1), text('before'))
    for (const name of [1, 2]) {
      const source = stall(bytes)
      const call = (async () => store.write(path(name), binary(source.body), { expect: 'any' }))()
      await source.reached
      const state = await store.read(path(name))
      if (name === 1) await claimContent(state, text('before'), 'A write showed before its content was complete.')
      else claimEqual(state, undefined, 'A write showed before its content was complete.')
      const members = await listAll(store, collection, 10)
      claimEqual(pathsOf(members), [path(1)], 'An unfinished write shows in the listing.')
      claimEqual(members[0]?.size, 6, 'An unfinished write shows in the listing.')
      source.resume()
      written(await call, 'The write was refused.')
      await claimStored(store, path(name), binary(bytes), 'The finished write has other content.')
      if (name === 1) await put(store, path(1), text('before'))
    }
  }),
  it('does not block other calls while the content of a write comes in slowly', async ({ store, path, collection }) => {
    await put(store, path(1), text('before'))
    const sources = [stall(createBytes(300_000, 1)), stall(createBytes(300_000, 2))]
    const calls = [
      (async () => store.write(path(1), binary(sources[0]!.body), { expect: 'any' }))(),
      (async () => store.create(collection, binary(sources[1]!.body)))(),
    ]
    await Promise.all(sources.map((source) => source.reached))
    const others = async () => {
      await store.read(path(1))
      await store.list(collection, { limit: 5 })
      await put(store, path(1), text('meanwhile'))
      await put(store, path(7), text('meanwhile'))
      await store.create(collection, text('meanwhile'))
      await remove(store, path(7))
    }
    await claimSettles(others(), 'Other calls wait for a write whose content comes in slowly.')
    for (const source of sources) source.resume()
    await Promise.all(calls)
  }),
  it('judges what a write expects when its content is complete, not when it begins', async ({ store, path }) => {
    const bytes = createBytes(300_000, 1)
    const { version } = await put(store, path(1), text('first'))
    const second = binary(interrupt(bytes, () => put(store, path(1), text('second'))))
    const overtaken = await store.write(path(1), second, { expect: { version } })
    claim(overtaken.outcome === 'conflict', 'The expected version was replaced while the content came in.')
    await claimContent(overtaken.current, text('second'), 'A conflict tells a state that is not the current one.')
    await claimStored(store, path(1), text('second'), 'A write overwrote one that it had not expected.')
    const earlier = binary(interrupt(bytes, () => put(store, path(2), text('earlier'))))
    const late = await store.write(path(2), earlier, { expect: 'absent' })
    claimEqual(late.outcome, 'conflict', 'Something was written to the path while the content came in.')
    await claimStored(store, path(2), text('earlier'), 'A write that expected nothing overwrote something.')
    const removed = binary(interrupt(bytes, () => remove(store, path(2))))
    const gone = await store.write(path(2), removed, { expect: 'present' })
    claimEqual(gone.outcome, 'conflict', 'The expected resource was removed while the content came in.')
    claimEqual(await store.read(path(2)), undefined, 'A write brought a removed resource back.')
  }),
  it('keeps the content that a reader has open as it was, or fails: never a mixture of two states', async (bench) => {
    const { store, path } = bench
    const [before, after] = [createBytes(2_000_000, 1), createBytes(2_000_000, 2)]
    const changes = [
      () => put(store, path(1), binary(stream(after, 65_536))),
      () => put(store, path(1), text('small')),
      () => remove(store, path(1)),
    ]
    for (const change of changes) {
      await put(store, path(1), binary(stream(before, 65_536)))
      const { body } = await readResource(store, path(1))
      if (!isLargeBody(body)) continue
      let at = 0
      try {
        for await (const chunk of body.open(0, before.length - 1)) {
          const isOld = Buffer.compare(chunk, before.subarray(at, at + chunk.length)) === 0
          claim(isOld, `A reader got bytes of another state from byte ${at} on.`)
          if (at === 0) await change()
          at += chunk.length
        }
      } catch (error) {
        if (error instanceof Error && error.name === 'AssertionError') throw error
        continue
      }
      claimEqual(at, before.length, 'The content that a reader had open ended early, without an error.')
    }
  }),
  it('serves a state that was read before it was replaced, or fails', async ({ store, path }) => {
    const before = createBytes(1_200_000, 1)
    await put(store, path(1), binary(stream(before, 65_536)))
    const state = await readResource(store, path(1))
    await put(store, path(1), binary(stream(createBytes(1_200_000, 2), 65_536)))
    let bytes: Buffer
    try {
      bytes = await readRange(state, 600_000, 1_199_999)
    } catch {
      return
    }
    const isSame = Buffer.compare(bytes, before.subarray(600_000)) === 0
    claim(isSame, 'The object of a state gave the bytes of the state that replaced it.')
  }),
]

export const staging: readonly Case[] = [
  it('takes content in, tells its size, and shows it nowhere', async ({ store, collection }) => {
    for (const size of [0, 10, 70_000, 1_500_000]) {
      const staged = await stage(store, createBytes(size, 1))
      claimEqual([staged.staged, staged.size], [true, size], 'What was staged tells another size.')
      claimEqual((await store.list(collection, { limit: 5 })).items.length, 0, 'Staged content shows in a listing.')
      await staged.discard()
    }
  }),
  it('writes staged content at a path, for a new member, and at related paths', {
    needs: ['related'],
  }, async ({ store, collection, path }) => {
    for (const size of [0, 10, 70_000, 1_500_000]) {
      const bytes = createBytes(size, size)
      const { outcome } = await store.write(path(1), binary(await stage(store, bytes)), { expect: 'any' })
      claim(outcome !== 'conflict', 'The write was refused.')
      await claimStored(store, path(1), binary(bytes), 'Staged content came back changed.')
      const staged = await stage(store, bytes)
      const result = await store.create(collection, text('item'), {
        related: (name) => [{ path: `${path(name)}0`, content: binary(staged) }],
      })
      await claimStored(store, `${created(result).path}0`, binary(bytes), 'Staged content came back changed.')
    }
  }),
  it('keeps staged content after a conflict, for another try', async ({ store, path }) => {
    for (const size of [10, 900_000]) {
      const bytes = createBytes(size, 3)
      const staged = await stage(store, bytes)
      const before = await put(store, path(1), text('before'))
      const refused = await store.write(path(1), binary(staged), { expect: { version: 'nonesuch' } })
      claimEqual(refused.outcome, 'conflict', 'The write should have been refused.')
      const done = await store.write(path(1), binary(staged), { expect: { version: before.version } })
      claimEqual(done.outcome, 'replaced', 'The version was the current one, so the write had to happen.')
      await claimStored(store, path(1), binary(bytes), 'Staged content came back changed.')
    }
  }),
  it('keeps what was written although its staged content is given up afterwards', async ({ store, path }) => {
    for (const size of [10, 900_000]) {
      const bytes = createBytes(size, 4)
      const staged = await stage(store, bytes)
      await store.write(path(1), binary(staged), { expect: 'any' })
      await staged.discard()
      await staged.discard()
      await claimStored(store, path(1), binary(bytes), 'Giving up staged content took a resource along.')
    }
  }),
  it('refuses staged content of somebody else', async ({ store, path }) => {
    const foreign: StagedBody = { staged: true, size: 3, discard() {} }
    const write = async () => store.write(path(1), binary(foreign), { expect: 'any' })
    await claimFails(write, 'Content was written that the store has never seen.')
    claimEqual(await store.read(path(1)), undefined, 'A write that failed has left something.')
  }),
]
