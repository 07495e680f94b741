import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../real/programs.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { startRecipe } from '../support/recipes.ts'

describe('examples/recipes/files.mjs', () => {
  it('takes files with the form that creates an item, and serves them below it', async () => {
    const { base, send } = await startRecipe('files.mjs')
    const form = new FormData()
    form.append('title', 'Engine')
    form.append('image', new Blob(['0123456789'], { type: 'image/png' }), 'engine.png')
    form.append('thumbnail', new Blob(['01'], { type: 'image/png' }), 'small.png')
    const created = await send('POST', '/photos', { body: form })
    expect([created.status, created.headers.get('location')]).toEqual([201, '/photos/1'])
    expect((await send('GET', '/photos/1')).value).toEqual({
      id: 1,
      title: 'Engine',
      image: { name: 'engine.png', type: 'image/png', size: 10 },
      thumbnail: { size: 2 },
    })
    const part = await fetch(`${base}/photos/1/image`, { headers: { Range: 'bytes=2-4' } })
    expect([part.status, part.headers.get('content-type'), await part.text()]).toEqual([206, 'image/png', '234'])

    const incomplete = new FormData()
    incomplete.append('title', 'Engine')
    expect((await send('POST', '/photos', { body: incomplete })).status).toBe(422)
  })
})

describe('examples/recipes/commonjs.cjs', () => {
  it('requires the package', async () => {
    const { send } = await startRecipe('commonjs.cjs')
    expect((await send('POST', '/notes', { json: { title: 'First' } })).status).toBe(201)
  })
})

describe('examples/recipes/typescript.ts', () => {
  it('serves typed definitions, and its typed client edits an item', async () => {
    const { send, program } = await startRecipe('typescript.ts')
    await program.waitFor(/^First true$/m)
    expect((await send('GET', '/tasks/1')).value).toEqual({ id: 1, title: 'First', done: true })
    expect((await send('PUT', '/tasks/1', { json: { title: 'Other', done: true } })).status).toBe(409)
    expect((await send('POST', '/tasks', { json: { title: '' } })).status).toBe(422)
    expect((await send('POST', '/tasks', { json: { title: 'Second' } })).status).toBe(201)
    expect((await send('GET', '/tasks/2')).value).toEqual({ id: 2, title: 'Second', done: false })
  })
})

describe('examples/recipes/testing', () => {
  const folder = 'examples/recipes/testing'
  const node = process.execPath
  const plain = resolve('test/support/plain-vitest.config.mjs')

  it.each<[string, readonly string[], Record<string, string>]>([
    ['node:test', ['--test', `${folder}/notes-node.test.mjs`], {}],
    ['supertest', ['--test', `${folder}/notes-supertest.test.mjs`], {}],
    ['Vitest', ['node_modules/vitest/vitest.mjs', 'run', '--config', plain, '--root', folder, 'notes-vitest'], {}],
    [
      'Jest',
      [
        'node_modules/jest/bin/jest.js',
        '--rootDir',
        folder,
        '--testMatch',
        '**/notes-jest.test.mjs',
        '--watchman=false',
      ],
      { NODE_OPTIONS: '--experimental-vm-modules' },
    ],
  ])('passes with %s', async (_, args, env) => {
    // A runner within a runner: nothing of the outer one may be left in its environment.
    const { PATH = '', HOME = '' } = process.env
    const { code, stdout, stderr } = await run(node, args, { env: { PATH, HOME, ...env }, limit: 60_000 })
    expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, ''])
  })

  it('passes with Jest where CommonJS requires the package, on each version of Node', async () => {
    // A copy of the package, since Jest goes by the real paths of files: those of a link are not below node_modules.
    const place = mkdtempSync(join(tmpdir(), 'jest-'))
    try {
      cpSync(`${folder}/commonjs`, place, { recursive: true })
      for (const file of ['dist', 'package.json']) {
        cpSync(file, join(place, 'node_modules/http-resource-service', file), { recursive: true })
      }
      for (const name of ['esbuild', 'jose', 'supertest', '@jest']) {
        symlinkSync(resolve('node_modules', name), join(place, 'node_modules', name))
      }
      const { PATH = '', HOME = '' } = process.env
      const args = [resolve('node_modules/jest/bin/jest.js'), '--rootDir', place, '--watchman=false']
      const { code, stdout, stderr } = await run(node, args, { cwd: place, env: { PATH, HOME }, limit: 60_000 })
      expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, ''])
    } finally {
      rmSync(place, { recursive: true })
    }
  })
})

describe('examples/contents.test.mjs', () => {
  it('runs the kit of content stores with node:test, and leaves no content behind', async () => {
    const { PATH = '', HOME = '' } = process.env
    const TMPDIR = mkdtempSync(join(tmpdir(), 'kit-'))
    closeAfterTest(() => rmSync(TMPDIR, { recursive: true }))
    const args = ['--test', '--test-reporter=tap', 'examples/contents.test.mjs']
    const { code, stdout } = await run(process.execPath, args, { env: { PATH, HOME, TMPDIR }, limit: 60_000 })
    expect([code, /^# fail 0$/m.test(stdout)]).toEqual([0, true])
    expect(Number(/^# pass (\d+)$/m.exec(stdout)![1])).toBeGreaterThan(10)
    expect(readdirSync(TMPDIR)).toEqual([])
  })
})
