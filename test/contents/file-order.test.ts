import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { stream } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import { createKey } from '../support/contents.ts'

/** What is made durable, and what gets its name, in order. */
const { steps, failing } = vi.hoisted(() => ({ steps: [] as string[], failing: new Set<string>() }))

vi.mock('node:fs/promises', async (load) => {
  const fs = await load<typeof import('node:fs/promises')>()
  return {
    ...fs,
    open: async (...args: Parameters<typeof fs.open>) => {
      const file = await fs.open(...args)
      const synchronize = file.sync.bind(file)
      file.sync = async () => {
        if (failing.delete(String(args[0]))) throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'fsync' })
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
  const read = (...args: unknown[]) => void setTimeout(() => Reflect.apply(fs.read, fs, args), 30)
  return { ...fs, read }
})

let directory: string | undefined
afterEach(async () => {
  steps.length = 0
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
  failing.add(above)
  const contents = fileContents({ directory: join(above, 'itself') })
  const put = () => contents.put(createKey(), stream(Buffer.from('bytes')))
  await expect(put()).rejects.toThrow('EIO')
  await put()
  expect(steps).toContain(`sync ${above}`)
  expect(steps).toContain(`sync ${directory}`)
})

it('acknowledges no put before the folder of its file is durable, also after a put that failed to make it so', async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-order-'))
  failing.add(directory)
  const contents = fileContents({ directory })
  const key = createKey()
  const put = () => contents.put(key, stream(Buffer.from('bytes')))
  await expect(put()).rejects.toThrow('EIO')
  await put()
  expect(steps[0]).toBe(`sync ${directory}`)
})
