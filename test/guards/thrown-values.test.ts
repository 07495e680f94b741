import { afterEach, describe, expect, it, vi } from 'vitest'
import { auth, basic } from '../../src/auth.ts'
import { basicCredentials } from '../auth-schemes/guarded-server.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { guardedHosts } from './guard-hosts.ts'

const running: RunningHost[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const host of running.splice(0)) await host.close()
})

/** What hosts may take for "go on". */
const THROWN = [new Error('secret'), undefined, null, false, 0, '', 'route', 'router']

describe.each(guardedHosts)('a guard that fails, on $name', ({ create, prefixes, protocol }) => {
  it.each(['throws', 'rejects'])('lets no request pass, whatever it %s', async (how) => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const prefix = prefixes.at(-1)!
    let thrown: unknown
    const verify = (): Promise<boolean> => {
      if (how === 'rejects') return Promise.reject(thrown)
      throw thrown
    }
    const reached: string[] = []
    const guard = auth({ schemes: [basic({ verify })] })
    const host = await runServer(await create(guard, prefix, (_by, target) => reached.push(target)), protocol)
    running.push(host)
    for (thrown of THROWN) {
      const answer = await host.send({
        path: `${prefix}/secret`,
        headers: { Authorization: basicCredentials('a', 'b') },
      })
      expect([thrown, answer.status]).toEqual([thrown, 500])
    }
    expect(reached).toEqual([])
  })
})
