import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Program, runProgram } from '../support/run-program.ts'
import { createDatabaseFile, type DatabaseFile } from '../support/sqlite.ts'
import { jsonOf, send } from './support.ts'

const SERVER = fileURLToPath(new URL('accepted-work-server.mjs', import.meta.url))

let file: DatabaseFile
beforeAll(async () => {
  file = await createDatabaseFile()
})
afterAll(() => file.remove())

async function start(): Promise<{ readonly program: Program; readonly port: number }> {
  const program = runProgram(SERVER, { DATABASE: file.path })
  const [, port] = await program.waitFor(/listening on (\d+)/)
  return { program, port: Number(port) }
}

describe('accepted work in a process that is killed', () => {
  it('is all finished after a restart, and none of it comes to its end twice (I7, issue 4)', async () => {
    const created = new Set<string>()
    const removed = new Map<string, string>()
    // Removals whose answer was lost: each may have been accepted or not.
    const doubtful = new Set<string>()
    const runs = new Map<string, string>()
    for (let round = 0; round < 4; round++) {
      const { program, port } = await start()
      const clients = Array.from({ length: 20 }, async (_, index) => {
        const answer = await send(port, 'POST', '/jobs', jsonOf({ round, index }))
        expect(answer.status).toBe(202)
        const path = answer.field('location')!
        created.add(path)
        if (index % 4 === 0) {
          doubtful.add(path)
          const removal = await send(port, 'DELETE', path)
          expect(removal.status).toBe(202)
          doubtful.delete(path)
          removed.set(path, removal.field('location')!)
        }
        const { state, run } = (await send(port, 'GET', path)).json()
        if (state === 'ready') runs.set(path, run)
      })
      // Those that were not answered before the end have been promised nothing.
      let isOver = false
      const settled = Promise.allSettled(clients).finally(() => {
        isOver = true
      })
      // However slow the machine is, some requests are answered and others are not.
      for (const before = created.size; created.size < before + 4 && !isOver; ) await sleep(5)
      await sleep(Math.random() * 300)
      await program.stop('SIGKILL')
      for (const result of await settled) {
        if (result.status === 'rejected') expect(String(result.reason)).toMatch(/No response|ECONNREFUSED|JSON/)
      }
    }
    expect(created.size).toBeGreaterThan(10)

    const { program, port } = await start()
    for (const path of created) {
      if (removed.has(path) || doubtful.has(path)) continue
      const item = await until(port, path, 'ready')
      if (runs.has(path)) expect(item.run).toBe(runs.get(path))
      runs.set(path, item.run)
    }
    for (const [path, monitor] of removed) {
      expect((await until(port, monitor, 'done')).result.deleted).toBe(true)
      expect((await send(port, 'GET', path)).status).toBe(410)
    }
    for (const path of created) {
      const isKept = !removed.has(path) && !doubtful.has(path)
      if (isKept) expect((await send(port, 'GET', path)).json().run).toBe(runs.get(path))
    }
    for (const path of doubtful) {
      const run = await untilSettled(port, path)
      if (run !== undefined && runs.has(path)) expect(run).toBe(runs.get(path))
    }
    expect(await program.stop()).toBe(null)
  }, 300_000)
})

/** Waits until the work of an item is done, or the item is gone. @returns the run that did it */
async function untilSettled(port: number, path: string): Promise<string | undefined> {
  for (const end = Date.now() + 60_000; ; await sleep(50)) {
    const answer = await send(port, 'GET', path)
    if (answer.status === 410) return undefined
    const { state, run } = answer.json()
    if (state === 'ready') return run
    if (Date.now() > end) throw new Error(`${path} is still ${state}.`)
  }
}

async function until(port: number, path: string, state: string) {
  for (const end = Date.now() + 60_000; ; ) {
    const item = (await send(port, 'GET', path)).json()
    if (item.state === state) return item
    if (Date.now() > end) throw new Error(`${path} is still ${item.state}.`)
    await sleep(50)
  }
}
