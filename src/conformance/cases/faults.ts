import { getEventListeners } from 'node:events'
import type { Content, ResourceStore } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimFails, claimResource, claimSettles } from '../claims.ts'
import { binary, brokenStream, create, createBytes, listAll, pathsOf, put, stall, stream, text } from '../samples.ts'
import type { Bench, Case } from '../types.ts'

/** Fails unless a write of some content fails and leaves everything as it was, where something is and where nothing is. */
async function claimNothingLeft(
  { store, path, collection }: Bench,
  makeContent: () => Content,
  makeSignal: () => AbortSignal | undefined,
): Promise<void> {
  const before = await put(store, path(1), text('as it was'))
  for (const name of [1, 2]) {
    const signal = makeSignal()
    const options = { expect: 'any', ...(signal === undefined ? {} : { signal }) } as const
    await claimFails(async () => store.write(path(name), makeContent(), options), 'The write should have failed.')
  }
  const signal = makeSignal()
  await claimFails(
    async () => store.create(collection, makeContent(), signal === undefined ? {} : { signal }),
    'The creation should have failed.',
  )
  const after = await store.read(path(1))
  await claimContent(after, text('as it was'), 'A write that failed has changed what was there.')
  claimEqual(claimResource(after, '').version, before.version, 'A write that failed has made a new version.')
  claimEqual(await store.read(path(2)), undefined, 'A write that failed has left something.')
  const members = await listAll(store, collection, 10)
  claimEqual(pathsOf(members), [path(1)], 'A write that failed has left a member in the listing.')
  await create(store, collection, text('the store goes on'))
}

async function stage(store: ResourceStore, body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<unknown> {
  return store.stage!(body, signal === undefined ? {} : { signal })
}

export const faults: readonly Case[] = [
  {
    title: 'leaves nothing of a stream that breaks off, and passes its error on',
    needs: ['contents'],
    async run(bench) {
      for (const size of [100, 100_000, 1_500_000]) {
        const error = new Error('The source broke off.')
        const body = () => binary(brokenStream(createBytes(size, 1), error))
        const thrown = await claimFails(
          async () => bench.store.write(bench.path(3), body(), { expect: 'any' }),
          'A write succeeded although its stream had broken off.',
        )
        claim(thrown === error, 'The error of the source came out as another one.')
      }
      await claimNothingLeft(
        bench,
        () => binary(brokenStream(createBytes(300_000, 2), new Error('gone'))),
        () => undefined,
      )
    },
  },
  {
    title: 'leaves nothing of a stream that breaks off before its first chunk',
    needs: ['contents'],
    async run(bench) {
      await claimNothingLeft(
        bench,
        () => binary(brokenStream(new Uint8Array(0), new Error('gone'))),
        () => undefined,
      )
    },
  },
  {
    title: 'does nothing when the signal is aborted already',
    async run({ store, path, collection, content }) {
      const reason = new Error('The client is gone.')
      const signal = AbortSignal.abort(reason)
      const before = await put(store, path(1), content(1, path(1)))
      const calls = [
        async () => store.write(path(1), content(2, path(1)), { expect: 'any', signal }),
        async () => store.write(path(2), content(2, path(2)), { expect: 'absent', signal }),
        async () => store.create(collection, (name) => content(3, path(name)), { signal }),
        async () => store.remove(path(1), { expect: 'any', mode: 'erase', signal }),
      ]
      for (const call of calls) {
        const thrown = await claimFails(call, 'A call succeeded although its signal had been aborted before.')
        claim(thrown === reason, 'An aborted call fails with the reason of its signal.')
      }
      const after = claimResource(await store.read(path(1)), 'An aborted removal removed the resource.')
      claimEqual(after.version, before.version, 'An aborted call changed the resource.')
      claimEqual((await store.list(collection, { limit: 5 })).items.length, 1, 'An aborted call left a member.')
    },
  },
  {
    title: 'leaves nothing of a stream when the signal aborts between two chunks',
    needs: ['contents'],
    async run(bench) {
      let controller = new AbortController()
      await claimNothingLeft(
        bench,
        () => binary(abortMidway(createBytes(600_000, 3), () => controller.abort())),
        () => {
          controller = new AbortController()
          return controller.signal
        },
      )
    },
  },
  {
    title: 'leaves nothing when the signal aborts at the end of the stream',
    needs: ['contents'],
    async run(bench) {
      let controller = new AbortController()
      async function* abortAtEnd(bytes: Uint8Array) {
        yield* stream(bytes, 50_000)
        controller.abort()
      }
      await claimNothingLeft(
        bench,
        () => binary(abortAtEnd(createBytes(200_000, 3))),
        () => {
          controller = new AbortController()
          return controller.signal
        },
      )
    },
  },
  {
    title: 'ends a write at once when the signal aborts while the source is silent, and with its reason',
    needs: ['contents'],
    async run({ store, path }) {
      const controller = new AbortController()
      const reason = new Error('The client is gone.')
      const source = stall(createBytes(300_000, 4))
      const call = (async () =>
        store.write(path(1), binary(source.body), { expect: 'any', signal: controller.signal }))()
      const failure = claimFails(() => call, 'A write succeeded although its signal had been aborted.')
      await source.reached
      controller.abort(reason)
      const thrown = await claimSettles(failure, 'A write waits for a silent source although its signal has aborted.')
      claim(thrown === reason, 'An aborted write fails with the reason of its signal.')
      claimEqual(await store.read(path(1)), undefined, 'An aborted write has left something.')
      source.resume()
    },
  },
  {
    title: 'closes the source of a write that was aborted',
    needs: ['contents'],
    async run({ store, path }) {
      const controller = new AbortController()
      const signals = { closed: () => {} }
      const closed = new Promise<void>((resolve) => {
        signals.closed = resolve
      })
      async function* source() {
        try {
          for (let i = 0; i < 200; i++) {
            yield createBytes(20_000, 1)
            controller.abort()
          }
        } finally {
          signals.closed()
        }
      }
      await claimFails(
        async () => store.write(path(1), binary(source()), { expect: 'any', signal: controller.signal }),
        'A write succeeded although its signal had been aborted.',
      )
      await claimSettles(closed, 'The source of an aborted write was never closed: it would be held for ever.')
    },
  },
  {
    title: 'leaves no listener on a signal that did not abort',
    needs: ['contents'],
    async run({ store, path, collection }) {
      const { signal } = new AbortController()
      const body = () => binary(stream(createBytes(200_000, 1), 10_000))
      await store.write(path(1), body(), { expect: 'any', signal })
      await store.write(path(1), body(), { expect: 'absent', signal })
      await store.create(collection, body(), { signal })
      const broken = binary(brokenStream(createBytes(100_000, 1), new Error('gone')))
      await claimFails(
        async () => store.write(path(1), broken, { expect: 'any', signal }),
        'The write should have failed.',
      )
      await store.read(path(1), { signal })
      await store.list(collection, { limit: 1, signal })
      await store.remove(path(1), { expect: 'any', mode: 'erase', signal })
      const { length } = getEventListeners(signal, 'abort')
      claimEqual(length, 0, 'Listeners stay on the signal, and with them all that they hold.')
    },
  },
  {
    title: 'leaves nothing of staged content whose stream breaks off or whose signal aborts',
    needs: ['contents', 'stage'],
    async run({ store }) {
      const error = new Error('The source broke off.')
      for (const size of [10, 500_000]) {
        const thrown = await claimFails(
          () => stage(store, brokenStream(createBytes(size, 1), error)),
          'Content was staged although its stream had broken off.',
        )
        claim(thrown === error, 'The error of the source came out as another one.')
      }
      const controller = new AbortController()
      await claimFails(
        () =>
          stage(
            store,
            abortMidway(createBytes(500_000, 1), () => controller.abort()),
            controller.signal,
          ),
        'Content was staged although its signal had been aborted.',
      )
    },
  },
]

async function* abortMidway(bytes: Uint8Array, abort: () => void): AsyncGenerator<Uint8Array> {
  yield* stream(bytes.subarray(0, bytes.length >> 1), 50_000)
  abort()
  yield* stream(bytes.subarray(bytes.length >> 1), 50_000)
}
