import { isResource } from '../../stores/rules.ts'
import type { RemoveResult, WriteResult } from '../../stores/types.ts'
import { create, nameOf, pathsOf, pause, race, remove } from '../calls.ts'
import { claim, claimEqual, claimOneWinner, claimResource, claimStored } from '../claims.ts'
import { explainHistory, type Operation } from '../register-history.ts'
import { binary, createBytes, stream } from '../samples.ts'
import { type Case, it } from '../types.ts'

const WRITERS = 16

export const races: readonly Case[] = [
  it('lets exactly one of many writers win that expect the same version', async (bench) => {
    const { store, path, content, keep, reopen } = bench
    const stores = [store, await reopen()]
    for (let round = 0; round < 4; round++) {
      const { version } = await keep(1, 0)
      const results = await race(stores, WRITERS, (own, i) =>
        own.write(path(1), content(i + 1, 1), { expect: { version } }),
      )
      const winner = claimOneWinner(results, 'Of the writers that expected the same version, exactly one may win.')
      await claimStored(store, path(1), content(winner + 1, 1), 'The winner was overwritten.')
    }
  }),
  it('lets exactly one of many writers win that expect nothing to be there', async (bench) => {
    const { store, path, content, reopen } = bench
    const stores = [store, await reopen()]
    for (let name = 1; name <= 4; name++) {
      const results = await race(stores, WRITERS, (own, i) =>
        own.write(path(name), content(i, name), { expect: 'absent' }),
      )
      const winner = claimOneWinner(results, 'Of the writers that expected nothing, exactly one may create.')
      await claimStored(store, path(name), content(winner, name), 'The winner was overwritten.')
    }
  }),
  it('lets exactly one win when large content races for the same version', { needs: ['contents'] }, async (bench) => {
    const { store, path, keep, reopen } = bench
    const stores = [store, await reopen()]
    const { version } = await keep(1, 0)
    const bodies = Array.from({ length: 5 }, (_, seed) => createBytes(300_000 + seed, seed))
    const results = await race(stores, bodies.length, (own, i) =>
      own.write(path(1), binary(stream(bodies[i]!, 65_536)), { expect: { version } }),
    )
    const winner = claimOneWinner(results, 'Of the writers that expected the same version, exactly one may win.')
    await claimStored(store, path(1), binary(bodies[winner]!), 'The winner has lost its content.')
  }),
  it('lets exactly one of a write and many removals win that expect the same version', async (bench) => {
    const { store, path, content, keep, reopen } = bench
    const stores = [store, await reopen()]
    for (let round = 0; round < 6; round++) {
      const expect = { version: (await keep(1, 0)).version }
      const results = await race<WriteResult | RemoveResult>(stores, 8, (own, i) =>
        i === round ? own.write(path(1), content(1, 1), { expect }) : own.remove(path(1), { expect, mode: 'erase' }),
      )
      const oneWins = 'Of a write and removals that expected the same version, exactly one may win.'
      const winner = claimOneWinner(results, oneWins)
      const isThere = isResource(await store.read(path(1)))
      const sentence = 'The resource is there although it was removed, or not although it was kept.'
      claimEqual(isThere, results[winner]!.outcome === 'replaced', sentence)
    }
  }),
  it('removes once, however many remove at the same time', async ({ modes, store, path, keep, reopen }) => {
    const stores = [store, await reopen()]
    for (const mode of modes) {
      await keep(1)
      const outcomes = (await race(stores, 8, (own) => remove(own, path(1), mode))).map(({ outcome }) => outcome)
      const removed = outcomes.filter((outcome) => outcome === 'removed').length
      claimEqual(removed, 1, `Of many removals of one resource, exactly one removes it (${mode}).`)
      claim(!outcomes.includes('conflict'), 'A removal without a condition met a conflict.')
    }
  }),
  it('loses no update among writers that read, change and swap', async ({ store, path, content, keep, reopen }) => {
    const stores = [store, await reopen()]
    await keep(1, 0)
    let swaps = 0
    let attempts = 0
    const seen = new Map<string, string>()
    await race(stores, 8, async (own) => {
      for (let done = 0; done < 5; ) {
        claim(attempts++ < 5000, 'Writers that read, change and swap meet conflicts for ever.')
        const before = claimResource(await own.read(path(1)), 'The resource is gone.')
        await pause()
        const { version } = before
        const result = await own.write(path(1), content(swaps % 100, 1), { expect: { version } })
        if (result.outcome === 'conflict') continue
        claim(!seen.has(version), 'Two writers replaced the same state: the update of one of them is lost.')
        seen.set(version, result.resource.version)
        swaps++
        done++
      }
    })
    claimEqual(seen.size, 40, 'A swap was acknowledged that did not happen.')
    const last = claimResource(await store.read(path(1)), 'The resource is gone.').version
    claim(!seen.has(last), 'The current state is one that was replaced.')
  }),
  it('assigns no name to two members while clients write names of their own', async (bench) => {
    const { store, collection, path, content, reopen } = bench
    const stores = [store, await reopen()]
    const first = Number(nameOf(await create(store, collection, (name) => content(0, name))))
    const [assigned, written] = await Promise.all([
      race(stores, 20, (own) => create(own, collection, (name) => content(7, name))),
      race(stores, 20, (own, i) => {
        const name = first + 1 + i * 2
        return own.write(path(name), content(9, name), { expect: 'absent' })
      }),
    ])
    const clients = written.flatMap((result) => (result.outcome === 'created' ? [result.resource] : []))
    const paths = pathsOf([...assigned, ...clients])
    claimEqual(new Set(paths).size, paths.length, 'A member was created under a name that a client had created.')
    for (const member of assigned)
      await claimStored(store, member.path, content(7, nameOf(member)), 'A created member was overwritten.')
  }),
  it('behaves, towards all who use one resource at once, as if one call came after the other', async (bench) => {
    const { store, path, content, reopen } = bench
    const stores = [store, await reopen()]
    for (let round = 0; round < 3; round++) {
      const history: Operation[] = []
      let clock = 0
      /** Runs a call and records what it saw, and between which moments. */
      async function record(call: () => Promise<Operation['effect']>): Promise<void> {
        const begin = clock++
        history.push({ begin, effect: await call(), end: clock++ })
      }
      const name = round + 1
      await race(stores, 5, async (own, client) => {
        let known: string | undefined
        for (let step = 0; step < 8; step++) {
          await pause()
          const choice = (client * 3 + step * 5 + round) % 7
          await record(async () => {
            if (choice <= 2) {
              const state = await own.read(path(name))
              known = isResource(state) ? state.version : undefined
              return { kind: 'swap', from: known, to: known }
            }
            const expect = choice <= 4 && known !== undefined ? { version: known } : choice === 5 ? 'absent' : 'any'
            if (choice === 6 && expect !== 'absent') {
              const result = await own.remove(path(name), { expect, mode: 'erase' })
              if (result.outcome === 'removed') return { kind: 'swap', from: result.resource.version, to: undefined }
              return { kind: 'swap', from: undefined, to: undefined }
            }
            const result = await own.write(path(name), content(step, name), { expect })
            if (result.outcome === 'conflict') {
              const saw = isResource(result.current) ? result.current.version : undefined
              return { kind: 'swap', from: saw, to: saw }
            }
            known = result.resource.version
            if (expect === 'any') return { kind: 'write', isNew: result.outcome === 'created', to: known }
            return { kind: 'swap', from: expect === 'absent' ? undefined : expect.version, to: known }
          })
        }
      })
      const contradiction = explainHistory(history)
      claim(contradiction === undefined, contradiction ?? '')
    }
  }),
]
