import { getEventListeners } from 'node:events'
import { isHttpError } from '../../core/errors.ts'
import type { Content, ResourceStore } from '../../stores/types.ts'
import { claimGivenUp, create, pathsOf, put, readResource } from '../calls.ts'
import { claim, claimContent, claimEqual, claimFails, claimResource, claimSettles, claimStored } from '../claims.ts'
import { listAll } from '../lists.ts'
import { binary, brokenStream, createBytes, createGate, interrupt, stream, text } from '../samples.ts'
import { type Bench, type Case, it } from '../types.ts'

/** Content that is going to fail, and the signal that its write is given. */
interface FailingContent {
  readonly content: Content
  readonly signal?: AbortSignal
}

/** Fails unless a write of some content fails and leaves everything as it was, where something is and where nothing is. */
async function claimNothingLeft({ store, path, collection }: Bench, make: () => FailingContent): Promise<void> {
  const before = await put(store, path(1), text('as it was'))
  for (const name of [1, 2]) {
    const { content, ...options } = make()
    const write = async () => store.write(path(name), content, { expect: 'any', ...options })
    await claimFails(write, 'The write should have failed.')
  }
  const { content, ...options } = make()
  await claimFails(async () => store.create(collection, content, options), 'The creation should have failed.')
  const after = await store.read(path(1))
  await claimContent(after, text('as it was'), 'A write that failed has changed what was there.')
  claimEqual(claimResource(after, '').version, before.version, 'A write that failed has made a new version.')
  claimEqual(await store.read(path(2)), undefined, 'A write that failed has left something.')
  const members = await listAll(store, collection, 10)
  claimEqual(pathsOf(members), [path(1)], 'A write that failed has left a member in the listing.')
  await create(store, collection, text('the store goes on'))
}

/** Content during which its signal aborts. */
function makeAborted(createBody: (abort: () => void) => AsyncIterable<Uint8Array>): FailingContent {
  const controller = new AbortController()
  return { content: binary(createBody(() => controller.abort())), signal: controller.signal }
}

export const faults: readonly Case[] = [
  it('leaves nothing of a stream that breaks off, and passes its error on', { needs: ['contents'] }, async (bench) => {
    for (const size of [100, 100_000, 1_500_000]) {
      const error = new Error('The source broke off.')
      const body = binary(brokenStream(createBytes(size, 1), error))
      const write = async () => bench.store.write(bench.path(3), body, { expect: 'any' })
      const thrown = await claimFails(write, 'A write succeeded although its stream had broken off.')
      claim(thrown === error, 'The error of the source came out as another one.')
    }
    const bytes = createBytes(300_000, 2)
    await claimNothingLeft(bench, () => ({ content: binary(brokenStream(bytes, new Error('gone'))) }))
  }),
  it('leaves nothing of a stream that breaks off before its first chunk', { needs: ['contents'] }, async (bench) => {
    const bytes = new Uint8Array(0)
    await claimNothingLeft(bench, () => ({ content: binary(brokenStream(bytes, new Error('gone'))) }))
  }),
  it('does nothing when the signal is aborted already', async ({ store, path, collection, content, keep }) => {
    const reason = new Error('The client is gone.')
    const signal = AbortSignal.abort(reason)
    const before = await keep(1)
    const calls = [
      async () => store.write(path(1), content(2, 1), { expect: 'any', signal }),
      async () => store.write(path(2), content(2, 2), { expect: 'absent', signal }),
      async () => store.create(collection, (name) => content(3, name), { signal }),
      async () => store.remove(path(1), { expect: 'any', mode: 'erase', signal }),
    ]
    for (const call of calls) {
      const thrown = await claimFails(call, 'A call succeeded although its signal had been aborted before.')
      claim(thrown === reason, 'An aborted call fails with the reason of its signal.')
    }
    const after = claimResource(await store.read(path(1)), 'An aborted removal removed the resource.')
    claimEqual(after.version, before.version, 'An aborted call changed the resource.')
    claimEqual((await store.list(collection, { limit: 5 })).items.length, 1, 'An aborted call left a member.')
  }),
  it('leaves nothing of a stream when the signal aborts between two chunks', { needs: ['contents'] }, async (bench) => {
    await claimNothingLeft(bench, () => makeAborted((abort) => interrupt(createBytes(600_000, 3), abort)))
  }),
  it('leaves nothing when the signal aborts at the end of the stream', { needs: ['contents'] }, async (bench) => {
    async function* abortAtEnd(abort: () => void) {
      yield* stream(createBytes(200_000, 3), 50_000)
      abort()
    }
    await claimNothingLeft(bench, () => makeAborted(abortAtEnd))
  }),
  it('ends a write at once when the signal aborts while the source is silent, and with its reason', {
    needs: ['contents'],
  }, async ({ store, path, collection }) => {
    await claimGivenUp((body, signal) => store.write(path(1), binary(body), { expect: 'any', signal }))
    await claimGivenUp((body, signal) => store.create(collection, binary(body), { signal }))
    await claimGivenUp((body, signal) => store.create(collection, () => binary(body), { signal }))
    if (store.stage !== undefined) await claimGivenUp((body, signal) => store.stage!(body, { signal }))
    claimEqual(await store.read(path(1)), undefined, 'An aborted write has left something.')
    claimEqual(await listAll(store, collection, 5), [], 'An aborted creation has left something.')
  }),
  it('closes the source of a write that was aborted', { needs: ['contents'] }, async ({ store, path }) => {
    const controller = new AbortController()
    const closed = createGate()
    async function* source() {
      try {
        for (let i = 0; i < 200; i++) {
          yield createBytes(20_000, 1)
          controller.abort()
        }
      } finally {
        closed.open()
      }
    }
    const write = async () => store.write(path(1), binary(source()), { expect: 'any', signal: controller.signal })
    await claimFails(write, 'A write succeeded although its signal had been aborted.')
    await claimSettles(closed.opened, 'The source of an aborted write was never closed: it would be held for ever.')
  }),
  it('leaves no listener on a signal that did not abort', { needs: ['contents'] }, async (bench) => {
    const { store, path, collection } = bench
    const { signal } = new AbortController()
    const body = () => binary(stream(createBytes(200_000, 1), 10_000))
    await store.write(path(1), body(), { expect: 'any', signal })
    await store.write(path(1), body(), { expect: 'absent', signal })
    await store.create(collection, body(), { signal })
    const broken = binary(brokenStream(createBytes(100_000, 1), new Error('gone')))
    const write = async () => store.write(path(1), broken, { expect: 'any', signal })
    await claimFails(write, 'The write should have failed.')
    await store.stage?.(stream(createBytes(200_000, 1), 10_000), { signal })
    await store.read(path(1), { signal })
    await store.list(collection, { limit: 1, signal })
    await store.remove(path(1), { expect: 'any', mode: 'erase', signal })
    const { length } = getEventListeners(signal, 'abort')
    claimEqual(length, 0, 'Listeners stay on the signal, and with them all that they hold.')
  }),
  it('leaves nothing of staged content whose stream breaks off or whose signal aborts', {
    needs: ['contents', 'stage'],
  }, async ({ store }) => {
    const error = new Error('The source broke off.')
    for (const size of [10, 500_000]) {
      const broken = async () => store.stage!(brokenStream(createBytes(size, 1), error))
      const thrown = await claimFails(broken, 'Content was staged although its stream had broken off.')
      claim(thrown === error, 'The error of the source came out as another one.')
    }
    const controller = new AbortController()
    const body = interrupt(createBytes(500_000, 1), () => controller.abort())
    const aborted = async () => store.stage!(body, { signal: controller.signal })
    await claimFails(aborted, 'Content was staged although its signal had been aborted.')
    const early = async () => store.stage!(stream(createBytes(10, 1)), { signal: AbortSignal.abort(error) })
    const reason = await claimFails(early, 'Content was staged although its signal had been aborted before.')
    claim(reason === error, 'An aborted call fails with the reason of its signal.')
  }),
]

/** Fails unless content is kept, or refused for what is long about it. @param long what that is */
async function claimKept(store: ResourceStore, path: string, content: Content, long: string): Promise<void> {
  try {
    await put(store, path, content)
  } catch (error) {
    claim(isHttpError(error) && error.status < 500, `${long} makes the store fail with ${String(error)}.`)
    return
  }
  const sentence = `${long} is taken for another one.`
  await claimStored(store, path, content, sentence)
  claimEqual((await readResource(store, path)).contentLanguage, content.contentLanguage, sentence)
}

/** What clients may send, and what has no place in many a column. */
export const longValues: readonly Case[] = [
  it('keeps a path of 2048 bytes, or refuses it with an HttpError below 500', { needs: ['paths'] }, async (bench) => {
    const { store, path } = bench
    await claimKept(store, path('x'.repeat(2048 - path('').length)), text('long'), 'A path of 2048 bytes')
  }),
  it('keeps a long media type and a long list of languages, or refuses them with an HttpError below 500', {
    needs: ['contents'],
  }, async ({ store, path }) => {
    const contentType = `text/plain;x=${'x'.repeat(987)}`
    await claimKept(store, path(1), { contentType, body: 'x' }, 'A media type of 1000 characters')
    const contentLanguage = Array(250).fill('de').join(', ')
    await claimKept(store, path(2), { ...text('x'), contentLanguage }, 'A list of 250 languages')
  }),
]
