import { mkdir, mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createBytes, stream } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import { testContents } from '../../src/testing.ts'
import { createKey, listKeys } from '../support/contents.ts'

const folders: string[] = []

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'contents-'))
  folders.push(folder)
  return folder
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

testContents(
  'fileContents',
  async () => {
    const directory = join(await createFolder(), 'made', 'by', 'itself')
    return { contents: fileContents({ directory }), reopen: () => fileContents({ directory }) }
  },
  { describe, it },
)

describe('fileContents, its own ways', () => {
  it('keeps a file of its own for each key, with its last digits as folder, for its user only', async () => {
    const directory = join(await createFolder(), 'made')
    const key = createKey()
    await fileContents({ directory }).put(key, stream(createBytes(100_000, 1), 30_000))
    expect(await readdir(directory)).toEqual([key.slice(-2)])
    const folder = join(directory, key.slice(-2))
    const { size, mode } = await stat(join(folder, key))
    expect([size, mode & 0o777]).toEqual([100_000, 0o600])
    // Another user cannot put a file in its place, whatever the umask (threat 148).
    for (const made of [directory, folder]) expect((await stat(made)).mode & 0o777).toBe(0o700)
  })

  it('lists the remains of a put that was killed, and removes them with their key', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const [listed, known] = [createKey(), createKey()]
    for (const key of [listed, known]) {
      await mkdir(join(directory, key.slice(-2)), { recursive: true })
      await writeFile(join(directory, key.slice(-2), `${key}.part`), 'half')
    }
    expect((await listKeys(contents)).sort()).toEqual([listed, known].sort())
    await contents.remove(known)
    expect(await listKeys(contents)).toEqual([listed])
    for await (const one of contents.list()) await one.remove()
    expect(await listKeys(contents)).toEqual([])
  })

  it('leaves files alone that are not of its making', async () => {
    const directory = await createFolder()
    await mkdir(join(directory, 'ab'))
    await writeFile(join(directory, 'ab', 'notes.txt'), 'mine')
    await writeFile(join(directory, 'README'), 'mine')
    expect(await listKeys(fileContents({ directory }))).toEqual([])
  })

  it('ends a range early when the file was cut short, and never fills it up', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const key = createKey()
    await contents.put(key, stream(createBytes(300_000, 2), 30_000))
    await truncate(join(directory, key.slice(-2), key), 100_000)
    let length = 0
    for await (const chunk of contents.open(key, 0, 299_999)) length += chunk.length
    expect(length).toBe(100_000)
  })

  it('gives the whole of a file that is put back after it was found cut short', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const key = createKey()
    const bytes = createBytes(1000, 2)
    await contents.put(key, stream(bytes, 1000))
    const file = join(directory, key.slice(-2), key)
    await truncate(file, 100)
    expect(await contents.read!(key, 0, 999)).toHaveLength(100)
    await rm(file)
    await writeFile(file, bytes)
    expect(await contents.read!(key, 0, 999)).toEqual(Buffer.from(bytes))
  })

  it('refuses a key that could leave the directory', async () => {
    const contents = fileContents({ directory: await createFolder() })
    const key = '../../etc/passwd0000'
    await expect(contents.put(key, stream(createBytes(1, 1)))).rejects.toThrow(/hexadecimal digits/)
    await expect(async () => contents.remove(key)).rejects.toThrow(/hexadecimal digits/)
    await expect(contents.open(key, 0, 1)[Symbol.asyncIterator]().next()).rejects.toThrow(/hexadecimal digits/)
  })

  it('takes a directory, and nothing that it does not know', () => {
    expect(() => fileContents({} as never)).toThrow('fileContents takes as directory: text')
    expect(() => fileContents({ directory: '/tmp', fsync: false } as never)).toThrow(/has no option "fsync"/)
  })
})
