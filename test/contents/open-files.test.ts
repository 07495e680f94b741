import { closeSync, constants } from 'node:fs'
import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createInTurn, createOpenFiles } from '../../src/contents/open-files.ts'

let folder: string
let files: ReturnType<typeof createOpenFiles>
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'open-files-'))
  files = createOpenFiles(constants.O_RDONLY, createInTurn(16))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function createFile(name: string): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, name)
  return file
}

/** How many descriptors of this process are of files in the folder. */
async function countOpen(): Promise<number> {
  const descriptors = await readdir('/proc/self/fd')
  const targets = await Promise.all(descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return targets.filter((target) => target.startsWith(folder)).length
}

const untilOpen = (count: number) => expect.poll(countOpen, { interval: 50 }).toBe(count)

describe.runIf(process.platform === 'linux')('createOpenFiles', () => {
  it('shares a file among its readers, and closes it some time after the last', async () => {
    const name = await createFile('a')
    const first = await files.acquire(name)
    const second = await files.acquire(name)
    expect(second.descriptor).toBe(first.descriptor)
    files.release(first)
    await setTimeout(2500)
    expect(await countOpen()).toBe(1)
    files.release(second)
    await untilOpen(0)
    const third = await files.acquire(name)
    files.release(third)
    await untilOpen(0)
  })

  it('closes a removed file when its last reader has released it', async () => {
    const name = await createFile('a')
    const reader = await files.acquire(name)
    files.forget(name)
    expect(await countOpen()).toBe(1)
    files.release(reader)
    await untilOpen(0)
    files.release(await files.acquire(name))
    files.forget(name)
    await untilOpen(0)
  })

  it('closes a file in the place of a removed one, also where that has a reader for longer', async () => {
    const name = await createFile('a')
    const reader = await files.acquire(name)
    files.forget(name)
    files.release(await files.acquire(name))
    files.release(reader)
    await untilOpen(0)
  })

  it('closes each descriptor once when readers open the same file at once', async () => {
    const name = await createFile('a')
    const readers = await Promise.all(Array.from({ length: 20 }, () => files.acquire(name)))
    const descriptors = new Set(readers.map(({ descriptor }) => descriptor))
    for (const reader of readers) files.release(reader)
    await untilOpen(0)
    for (const descriptor of descriptors) expect(() => closeSync(descriptor)).toThrow(/EBADF/)
  })

  it('closes each descriptor where readers of the same file come and go at once', async () => {
    const name = await createFile('a')
    await Promise.all(Array.from({ length: 20 }, async () => files.release(await files.acquire(name))))
    await untilOpen(0)
  })

  it('opens a file once for readers that wait for their turn', async () => {
    const inTurn = createOpenFiles(constants.O_RDONLY, createInTurn(1))
    const name = await createFile('a')
    const readers = await Promise.all([1, 2, 3].map(() => inTurn.acquire(name)))
    expect(new Set(readers).size).toBe(1)
    for (const reader of readers) inTurn.release(reader)
    inTurn.forget(name)
    await untilOpen(0)
  })

  it('keeps at most 64 files open without a reader', async () => {
    const names = await Promise.all(Array.from({ length: 66 }, (_, index) => createFile(String(index))))
    // None is closed for its age.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    const opened: unknown[] = []
    for (const name of names) {
      const file = await files.acquire(name)
      opened.push(file)
      files.release(file)
    }
    vi.useRealTimers()
    await untilOpen(64)
    for (const [index, name] of names.entries()) {
      const file = await files.acquire(name)
      expect([index, file === opened[index]]).toEqual([index, index < 64])
      files.release(file)
      files.forget(name)
    }
    await untilOpen(0)
  })

  it('holds nothing of a file that cannot be opened', async () => {
    const name = join(folder, 'absent')
    await expect(files.acquire(name)).rejects.toMatchObject({ code: 'ENOENT' })
    await createFile('absent')
    files.release(await files.acquire(name))
    await untilOpen(0)
  })

  it('does not keep the process alive', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    files.release(await files.acquire(await createFile('a')))
    expect(setTimer.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    setTimer.mockRestore()
  })
})
