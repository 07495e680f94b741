import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { stream } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import { createKey } from '../support/contents.ts'

/** What is made durable, and what gets its name, in order. */
const { steps, failing, system } = vi.hoisted(() => ({
  steps: [] as string[],
  /** The folders that cannot be made durable the next time, with the code of the error. */
  failing: new Map<string, string>(),
  /** Bytes that the system gives at a time, and the code of the error with which the next read fails. */
  system: { most: Number.POSITIVE_INFINITY, failure: undefined as string | undefined },
}))

vi.mock('node:fs/promises', async (load) => {
  const fs = await load<typeof import('node:fs/promises')>()
  return {
    ...fs,
    open: async (...args: Parameters<typeof fs.open>) => {
      const file = await fs.open(...args)
      const synchronize = file.sync.bind(file)
      file.sync = async () => {
        const code = failing.get(String(args[0]))
        failing.delete(String(args[0]))
        if (code !== undefined) throw Object.assign(new Error(code), { code, syscall: 'fsync' })
        await synchronize()
        steps.push(`sync ${String(args[0])}`)
      }
      return file
    },
    rename: async (from: string, to: string) => {
      await fs.rename(from, to)
      steps.push(`rename ${from} ${to}`)
    },
  }
})

/** A thread that reads may be slower than another that closes. */
vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>()
  const read = (descriptor: number, buffer: Uint8Array, at: number, length: number, ...rest: unknown[]) => {
    const args = [descriptor, buffer, at, Math.min(length, system.most), ...rest]
    const { failure: code } = system
    system.failure = undefined
    if (code === undefined) setTimeout(() => Reflect.apply(fs.read, fs, args), 30)
    else (rest[1] as (error: Error) => void)(Object.assign(new Error(code), { code, syscall: 'read' }))
  }
  return { ...fs, read }
})

let directory: string | undefined
afterEach(async () => {
  steps.length = 0
  system.most = Number.POSITIVE_INFINITY
  if (directory !== undefined) await rm(directory, { recursive: true, force: true })
})

it('has its bytes on the disk before its name, and its name before the put ends', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const key = createKey()
  const folder = join(directory, key.slice(-2))
  const name = join(folder, key)
  const contents = fileContents({ directory })
  await contents.put(key, stream(Buffer.from('bytes')))
  expect(steps).toEqual([`sync ${directory}`, `sync ${name}.part`, `rename ${name}.part ${name}`, `sync ${folder}`])
})

it('keeps a file open for a reader while its content is removed', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const key = createKey()
  const contents = fileContents({ directory })
  await contents.put(key, stream(Buffer.from('bytes')))
  expect(String(await contents.read!(key, 0, 4))).toBe('bytes')
  const reading = contents.read!(key, 1, 3)
  await contents.remove(key)
  expect(String(await reading)).toBe('yte')
})

it('goes on reading where the system gives less than it was asked for, and ends where there is no more', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const key = createKey()
  const contents = fileContents({ directory })
  await contents.put(key, stream(Buffer.from('some bytes')))
  system.most = 3
  expect(String(await contents.read!(key, 1, 8))).toBe('ome byte')
  expect(String(await contents.read!(key, 5, 20))).toBe('bytes')
})

it('says 503 where the file system is away when an open file is read, and reads it once it is back', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const key = createKey()
  const contents = fileContents({ directory })
  await contents.put(key, stream(Buffer.from('bytes')))
  expect(String(await contents.read!(key, 0, 4))).toBe('bytes')
  system.failure = 'ENOTCONN'
  await expect((async () => contents.read!(key, 0, 4))()).rejects.toMatchObject({ status: 503 })
  expect(String(await contents.read!(key, 0, 4))).toBe('bytes')
})

it('writes where the file system cannot synchronize a folder', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const key = createKey()
  const contents = fileContents({ directory })
  for (const folder of [directory, join(directory, key.slice(-2))]) failing.set(folder, 'EINVAL')
  await contents.put(key, stream(Buffer.from('bytes')))
  expect(String(await contents.read!(key, 0, 4))).toBe('bytes')
})

it('makes the folders durable that it makes above its own, once', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const made = join(directory, 'made', 'by', 'itself')
  const contents = fileContents({ directory: made })
  await contents.put(createKey(), stream(Buffer.from('bytes')))
  const folders = steps.filter((step) => !step.includes('.part')).slice(0, 4)
  expect(folders).toEqual(
    [join(directory, 'made', 'by'), join(directory, 'made'), directory, made].map((name) => `sync ${name}`),
  )
})

it('acknowledges no put before the folders above its own are durable, also after a put that failed to make them so', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  const above = join(directory, 'made')
  failing.set(above, 'EIO')
  const contents = fileContents({ directory: join(above, 'itself') })
  const put = () => contents.put(createKey(), stream(Buffer.from('bytes')))
  await expect(put()).rejects.toThrow('EIO')
  await put()
  expect(steps).toContain(`sync ${above}`)
  expect(steps).toContain(`sync ${directory}`)
})

it('acknowledges no put before the folder of its file is durable, also after a put that failed to make it so', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  failing.set(directory, 'EIO')
  const contents = fileContents({ directory })
  const key = createKey()
  const put = () => contents.put(key, stream(Buffer.from('bytes')))
  await expect(put()).rejects.toThrow('EIO')
  await put()
  expect(steps[0]).toBe(`sync ${directory}`)
})
