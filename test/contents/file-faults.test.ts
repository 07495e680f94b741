import { execFileSync } from 'node:child_process'
import { constants, existsSync, statfsSync } from 'node:fs'
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { readAll } from '../../src/conformance/contents-cases.ts'
import { createBytes, stream } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import { openFile } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createKey, listKeys } from '../support/contents.ts'
import { startHost } from '../support/hosts.ts'
import { createSmallDisk, diskKinds } from '../support/small-disk.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'file-faults-'))
  closeAfterTest(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A service whose large content lies in a directory. */
async function serve(directory: string) {
  const file = await createDatabaseFile()
  const store = sqliteStore(file.open(), { contents: fileContents({ directory }), inlineLimit: 1000 })
  const errors: unknown[] = []
  const service = createResourceService(store, { onError: (error) => void errors.push(error) })
  const host = await startHost('plain', service)
  closeAfterTest(() => file.remove())
  closeAfterTest(() => store.close?.())
  closeAfterTest(() => service.close())
  closeAfterTest(() => host.close())
  const put = (path: string, body: Uint8Array) =>
    host.send({ method: 'PUT', path, headers: { 'Content-Type': 'application/octet-stream' }, body })
  return { put, get: (path: string) => host.send({ path }), errors }
}

/** Where this process may mount one. */
const realDisks = diskKinds.filter((kind) => kind === 'tmpfs')

describe('fileContents with a directory that fails', () => {
  it('is away where the sweep has removed what is being put', async () => {
    const contents = fileContents({ directory: await createFolder() })
    const key = createKey()
    async function* sweptMeanwhile(): AsyncGenerator<Uint8Array> {
      yield createBytes(10, 1)
      for await (const { remove } of contents.list()) await remove()
      yield createBytes(10, 2)
    }
    await expect(contents.put(key, sweptMeanwhile())).rejects.toMatchObject({ status: 503 })
    expect(await listKeys(contents)).toEqual([])
  })

  it.each(realDisks)('answers 507 on a full disk, leaves no part, and serves what is there: %s', async (kind) => {
    const disk = createSmallDisk(kind, 4_000_000)
    closeAfterTest(() => disk.remove())
    const { put, get, errors } = await serve(disk.folder)
    const kept = createBytes(1_000_000, 1)
    expect((await put('/kept', kept)).status).toBe(201)
    for (const path of ['/new', '/kept']) {
      const answer = await put(path, createBytes(6_000_000, 2))
      expect(answer.status).toBe(507)
      expect(answer.body.toString()).not.toContain(disk.folder)
    }
    expect((await get('/kept')).body.equals(kept)).toBe(true)
    expect((await get('/new')).status).toBe(404)
    expect(await listKeys(fileContents({ directory: disk.folder }))).toHaveLength(1)
    expect((await put('/new', createBytes(1_500_000, 3))).status).toBe(201)
    expect(errors.every((error) => (error as { status?: number }).status === 507)).toBe(true)
  })

  it.each(realDisks)('answers 507 where there is no room for a further folder: %s', async (kind) => {
    const disk = createSmallDisk(kind, 4_000_000)
    closeAfterTest(() => disk.remove())
    const { put } = await serve(disk.folder)
    expect((await put('/kept', createBytes(10_000, 1))).status).toBe(201)
    const { files, ffree } = statfsSync(disk.folder)
    execFileSync('mount', ['-o', `remount,nr_inodes=${files - ffree}`, disk.folder])
    expect((await put('/new', createBytes(10_000, 2))).status).toBe(507)
    execFileSync('mount', ['-o', 'remount,nr_inodes=100', disk.folder])
    expect((await put('/new', createBytes(10_000, 2))).status).toBe(201)
  })

  // Node has no name for EDQUOT.
  it.each([
    ['ENOSPC', -28],
    ['Unknown system error -122', -122],
    ['EFBIG', -27],
  ])('answers 507 where the system says %s, and leaves no part', async (code, errno) => {
    const folder = await createFolder()
    const { put, get } = await serve(folder)
    const handle = await open(folder)
    const write = vi.spyOn(Object.getPrototypeOf(handle), 'write')
    await handle.close()
    write.mockRejectedValueOnce(Object.assign(new Error(code), { code, errno, syscall: 'write' }))
    expect((await put('/new', createBytes(10_000, 1))).status).toBe(507)
    expect((await get('/new')).status).toBe(404)
    expect(await listKeys(fileContents({ directory: folder }))).toEqual([])
    expect((await put('/new', createBytes(10_000, 1))).status).toBe(201)
  })

  it.each(realDisks)(
    'answers 5xx without a path when the disk is read-only, and serves what is there: %s',
    async (kind) => {
      const disk = createSmallDisk(kind, 4_000_000)
      closeAfterTest(() => disk.remove())
      const { put, get } = await serve(disk.folder)
      const kept = createBytes(100_000, 1)
      expect((await put('/kept', kept)).status).toBe(201)
      execFileSync('mount', ['-o', 'remount,ro', disk.folder])
      const answer = await put('/new', kept)
      expect(answer.status).toBe(500)
      expect(answer.body.toString()).not.toMatch(/EROFS|file-faults|small-disk/)
      expect((await get('/new')).status).toBe(404)
      expect((await get('/kept')).body.equals(kept)).toBe(true)
      execFileSync('mount', ['-o', 'remount,rw', disk.folder])
      expect((await put('/new', kept)).status).toBe(201)
    },
  )

  it.each(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOTCONN', 'ESTALE', 'EHOSTDOWN'])(
    'answers 503 with Retry-After where the system says %s',
    async (code) => {
      const folder = await createFolder()
      const { put } = await serve(folder)
      const handle = await open(folder)
      const write = vi.spyOn(Object.getPrototypeOf(handle), 'write')
      await handle.close()
      write.mockRejectedValueOnce(Object.assign(new Error(code), { code, syscall: 'write' }))
      const answer = await put('/new', createBytes(10_000, 1))
      expect([answer.status, answer.field('retry-after')]).toEqual([503, '1'])
      expect((await put('/new', createBytes(10_000, 1))).status).toBe(201)
    },
  )

  it('says 503 where the system says ESTALE of a file that is read, and reads it once it does not', async () => {
    const contents = fileContents({ directory: await createFolder() })
    const key = createKey()
    await contents.put(key, stream(createBytes(10, 1)))
    const handle = await open(tmpdir())
    const read = vi.spyOn(Object.getPrototypeOf(handle), 'read')
    await handle.close()
    read.mockRejectedValueOnce(Object.assign(new Error('ESTALE'), { code: 'ESTALE', syscall: 'read' }))
    await expect(readAll(contents, key, 0, 9)).rejects.toMatchObject({ status: 503 })
    expect(await readAll(contents, key, 0, 9)).toHaveLength(10)
  })

  it.each([Object.assign(new Error('The source broke.'), { code: 'ENOSPC' }), null])(
    'passes the error of a source on as it is, whatever its code: %s',
    async (error) => {
      async function* source(): AsyncGenerator<Uint8Array> {
        yield createBytes(10, 1)
        throw error
      }
      await expect(fileContents({ directory: await createFolder() }).put(createKey(), source())).rejects.toBe(error)
    },
  )

  it('fails where content cannot be removed: it would stay, and its row would not', async () => {
    const directory = await createFolder()
    const key = createKey()
    await mkdir(join(directory, key.slice(-2), key), { recursive: true })
    await expect((async () => fileContents({ directory }).remove(key))()).rejects.toThrow(/EISDIR|EPERM/)
  })

  it('fails where its directory cannot be listed, unlike one that is not there yet', async () => {
    const folder = await createFolder()
    await writeFile(join(folder, 'file'), '')
    await expect(listKeys(fileContents({ directory: join(folder, 'file') }))).rejects.toThrow('ENOTDIR')
    expect(await listKeys(fileContents({ directory: join(folder, 'absent') }))).toEqual([])
  })

  it('answers 5xx when the directory is a file', async () => {
    const directory = join(await createFolder(), 'file')
    await writeFile(directory, '')
    const { put } = await serve(directory)
    const answer = await put('/a', createBytes(100_000, 1))
    expect(answer.status).toBe(500)
    expect(answer.body.toString()).not.toMatch(/EEXIST|ENOTDIR|file-faults/)
  })

  it('makes the directory again when it was removed while it serves', async () => {
    const directory = join(await createFolder(), 'contents')
    const contents = fileContents({ directory })
    const key = createKey()
    await contents.put(key, stream(createBytes(10, 1), 10))
    await rm(directory, { recursive: true })
    await contents.put(key, stream(createBytes(10, 1), 10))
    expect(await readAll(contents, key, 0, 9)).toHaveLength(10)
  })

  it('is away where its directory is removed repeatedly', async () => {
    const directory = join(await createFolder(), 'contents')
    const contents = fileContents({ directory })
    let isOver = false
    const removing = (async () => {
      while (!isOver) await rm(directory, { recursive: true, force: true }).catch(() => {})
    })()
    const puts = await Promise.allSettled(
      Array.from({ length: 100 }, async () => contents.put(createKey(), stream(createBytes(10, 1), 10))),
    )
    isOver = true
    await removing
    const failures = puts.flatMap((put) => (put.status === 'rejected' ? [put.reason] : []))
    for (const failure of failures) expect(failure).toMatchObject({ status: 503 })
  })
})

describe('fileContents with files that are lost', () => {
  it('says 503 of a piece that is read at once, and reads it as soon as it is put back', async () => {
    const contents = fileContents({ directory: await createFolder() })
    const key = createKey()
    await expect((async () => contents.read!(key, 0, 9))()).rejects.toMatchObject({ status: 503 })
    await contents.put(key, stream(createBytes(10, 1), 10))
    expect(await contents.read!(key, 0, 9)).toHaveLength(10)
  })

  it('reports content that is gone to the operator, and answers 503', async () => {
    const directory = await createFolder()
    const { put, get, errors } = await serve(directory)
    expect((await put('/kept', createBytes(200_000, 1))).status).toBe(201)
    await rm(directory, { recursive: true })
    expect((await get('/kept')).status).toBe(503)
    expect(errors).toHaveLength(1)
    expect((errors[0] as Error).cause).toMatchObject({ code: 'ENOENT' })
  })

  it.each([10, 999])('serves content of 1000 bytes that was cut to %i as soon as it is put back', async (length) => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const key = createKey()
    const file = join(directory, key.slice(-2), key)
    await contents.put(key, stream(createBytes(1000, 1)))
    const read = async () => (await contents.read!(key, 0, 999)).length
    expect(await read()).toBe(1000)
    const content = await readFile(file)
    await truncate(file, length)
    expect(await read()).toBe(length)
    await writeFile(`${file}.part`, content)
    await rename(`${file}.part`, file)
    expect(await read()).toBe(1000)
  })

  it('reports content that was cut short to the operator', async () => {
    const directory = await createFolder()
    const { put, get, errors } = await serve(directory)
    expect((await put('/kept', createBytes(200_000, 1))).status).toBe(201)
    const [file] = (await readdir(directory, { recursive: true })).filter((name) => name.length > 16)
    await writeFile(join(directory, file!), '')
    expect((await get('/kept')).status).toBe(503)
    expect(errors).toHaveLength(1)
    expect((errors[0] as Error).cause).toMatchObject({ message: expect.stringContaining('not the bytes') })
  })

  it('does not wait for the other end of a named pipe', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const key = createKey()
    await mkdir(join(directory, key.slice(-2)))
    const pipe = join(directory, key.slice(-2), key)
    execFileSync('mkfifo', [pipe])
    const reading = readAll(contents, key, 0, 9).catch((error: unknown) => error)
    const late = new Promise((resolve) => setTimeout(resolve, 2000, 'late'))
    try {
      expect(await Promise.race([reading, late])).not.toBe('late')
    } finally {
      // Lets a reader that waits go.
      await (await open(pipe, constants.O_RDWR | constants.O_NONBLOCK)).close()
      await reading
    }
    await expect(reading).resolves.toBeInstanceOf(Error)
  })
})

describe('fileContents with names that lead elsewhere', () => {
  it('neither reads, lists nor removes through a symbolic link in the place of content', async () => {
    const [directory, elsewhere] = [await createFolder(), await createFolder()]
    const secret = join(elsewhere, 'secret')
    await writeFile(secret, 'x'.repeat(100))
    const contents = fileContents({ directory })
    const key = createKey()
    await mkdir(join(directory, key.slice(-2)))
    await symlink(secret, join(directory, key.slice(-2), key))
    await expect(readAll(contents, key, 0, 9)).rejects.toThrow()
    expect(await listKeys(contents)).toEqual([])
    await contents.remove(key)
    expect(existsSync(secret)).toBe(true)
  })

  it('writes nothing through a symbolic link in the place of a part', async () => {
    const [directory, elsewhere] = [await createFolder(), await createFolder()]
    const contents = fileContents({ directory })
    const key = createKey()
    await mkdir(join(directory, key.slice(-2)))
    await symlink(join(elsewhere, 'new'), join(directory, key.slice(-2), `${key}.part`))
    await expect(contents.put(key, stream(createBytes(10, 1), 10))).rejects.toThrow(/EEXIST/)
    expect(await readdir(elsewhere)).toEqual([])
  })

  it.each([
    '..',
    '../../../../etc/passwd',
    'a/../../bbbbbbbbbbbbbbbb',
    '%2e%2e%2f'.repeat(3),
    'A'.repeat(20),
    '',
    '\0'.repeat(20),
  ])('refuses the key %j', async (key) => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    await expect(contents.put(key, stream(createBytes(1, 1), 1))).rejects.toThrow(/hexadecimal digits/)
    await expect(readAll(contents, key, 0, 0)).rejects.toThrow(/hexadecimal digits/)
    await expect((async () => contents.remove(key))()).rejects.toThrow(/hexadecimal digits/)
    expect(await readdir(directory)).toEqual([])
  })
})

describe('fileContents and a reader', () => {
  it('closes its file when the reader stops and leaves, and when it aborts', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const key = createKey()
    await contents.put(key, stream(createBytes(1_000_000, 1), 100_000))
    const isOpen = async (): Promise<boolean> => {
      const links = await readdir('/proc/self/fd').catch(() => [])
      const targets = await Promise.all(links.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
      return targets.some((target) => target.includes(key))
    }
    const reader = contents.open(key, 0, 999_999)[Symbol.asyncIterator]()
    await reader.next()
    expect(await isOpen()).toBe(process.platform === 'linux')
    await reader.return?.()
    expect(await isOpen()).toBe(false)
  })

  it.runIf(process.platform === 'linux')('keeps no file and no folder open once it is put and read', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    for (let count = 0; count < 10; count++) {
      const key = createKey()
      await contents.put(key, stream(createBytes(100_000, 1), 100_000))
      expect((await listOpen(directory)).filter((name) => name.includes(key) || !/[0-9a-f]{16}/.test(name))).toEqual([])
      for (let reads = 0; reads < 3; reads++) await contents.read!(key, 10, 19)
      // Beyond its end: the file is forgotten.
      if (count === 9) await contents.read!(key, 99_990, 100_009)
    }
    await expect.poll(() => listOpen(directory)).toEqual([])
  })

  it.runIf(process.platform === 'linux')('closes files whose reader or source is given up without a word', async () => {
    const directory = await createFolder()
    const contents = fileContents({ directory })
    const key = createKey()
    await contents.put(key, stream(createBytes(1_000_000, 1), 100_000))
    async function* fallSilent() {
      yield createBytes(1000, 1)
      await new Promise(() => {})
    }
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    process.on('warning', note)
    closeAfterTest(() => process.off('warning', note))
    void contents.put(createKey(), fallSilent())
    await contents.open(key, 0, 999_999)[Symbol.asyncIterator]().next()
    // As where the function of `range` throws afterwards.
    await openFile(join(directory, key.slice(-2), key), { contentType: 'text/plain' })
    await expect.poll(() => listOpen(directory)).toHaveLength(3)
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    await vi.waitFor(async () => {
      collect()
      expect(await listOpen(directory)).toEqual([])
    }, 10_000)
    await sleep(10)
    // Node closes a file that is collected with a warning, and from release 26 on with an error that ends the process.
    expect(warnings).toEqual([])
  })
})

/** The files of a folder that this process has open. */
async function listOpen(folder: string): Promise<string[]> {
  const links = await readdir('/proc/self/fd')
  const targets = await Promise.all(links.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return targets.filter((target) => target.startsWith(folder))
}
