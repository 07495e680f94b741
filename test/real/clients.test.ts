import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
// @ts-expect-error the example is JavaScript, as its readers will write it
import { fileStore } from '../../examples/file-store.js'
import { type AnyServer, attach } from '../../src/adapters/node.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { findProgram, type Outcome, run } from './programs.ts'

const [curl, wget, aria2c] = [findProgram('curl'), findProgram('wget'), findProgram('aria2c')]
const [zsync, zsyncmake] = [findProgram('zsync'), findProgram('zsyncmake')]
const SIZE = 3_000_000
const HALF = 1_234_567

const folder = mkdtempSync(join(tmpdir(), 'clients-'))
const at = (...names: string[]): string => join(folder, ...names)
/** Bytes that no two ranges have in common. */
const film = Buffer.from(Uint32Array.from({ length: SIZE / 4 }, (_, i) => i * 2654435761).buffer)
const other = Buffer.from(film).reverse()

let files: RunningHost
let http: RunningHost
let http2: RunningHost

beforeAll(async () => {
  mkdirSync(at('files'))
  writeFileSync(at('files', 'film'), film)
  utimesSync(at('files', 'film'), 1_700_000_000, 1_700_000_000)
  const serve = (server: AnyServer, service: ReturnType<typeof createResourceService>, protocol?: 'http2') => {
    attach(server, service)
    return runServer(server as unknown as Server, protocol)
  }
  const resources = { '/{name}': document({ methods: ['GET'] }) }
  files = await serve(createServer(), createResourceService(fileStore(at('files')), { resources }))
  const service = createResourceService(memoryStore())
  http = await serve(createServer(), service)
  http2 = await serve(createHttp2Server(), service, 'http2')
})
afterAll(async () => {
  for (const host of [files, http, http2]) await host?.close()
  rmSync(folder, { recursive: true, force: true })
})

const urlOf = ({ port }: RunningHost, path: string): string => `http://127.0.0.1:${port}${path}`

/** A folder of its own with a download that broke off. */
function startDownload(name: string, content: Uint8Array = film.subarray(0, HALF)): string {
  mkdirSync(at(name))
  writeFileSync(at(name, 'film'), content)
  return at(name)
}

/** The statuses of the answers while something runs. */
async function recordAnswers(ask: () => Promise<unknown>): Promise<number[]> {
  const answers: number[] = []
  const record = (_: unknown, res: ServerResponse) => res.once('close', () => answers.push(res.statusCode))
  files.server.prependListener('request', record)
  await ask()
  files.server.off('request', record)
  return answers
}

describe.runIf(curl)('curl', () => {
  const ask = (...args: string[]): Promise<Outcome> => run(curl!, ['-sS', ...args], { cwd: folder })
  const statusOf = async (...args: string[]): Promise<string> =>
    (await ask('-o', at('ignored'), '-w', '%{http_code}', ...args)).stdout

  it('goes on with a download that broke off, and sees one that is whole', async () => {
    const cwd = startDownload('curl')
    const resume = () => ask('-C', '-', '-o', join(cwd, 'film'), '-w', '%{http_code}', urlOf(files, '/film'))
    for (const status of ['206', '416']) {
      const { code, stdout } = await resume()
      expect([code, stdout]).toEqual([0, status])
      expect(readFileSync(join(cwd, 'film')).equals(film)).toBe(true)
    }
  })

  it('gets ranges, one and several', async () => {
    const [one, several] = ['-4', '0-3,100-103'].map((range) =>
      ask('-r', range, '-o', at(range), urlOf(files, '/film')),
    )
    await Promise.all([one, several])
    expect(readFileSync(at('-4')).equals(film.subarray(-4))).toBe(true)
    const parts = readFileSync(at('0-3,100-103'))
    expect([parts.includes(film.subarray(0, 4)), parts.includes(film.subarray(100, 104))]).toEqual([true, true])
  })

  it('asks with the tag and the date that it has saved', async () => {
    const tag = at('tag')
    expect(await statusOf('--etag-save', tag, urlOf(files, '/film'))).toBe('200')
    expect(await statusOf('--etag-compare', tag, urlOf(files, '/film'))).toBe('304')
    const old = startDownload('dated', film)
    utimesSync(join(old, 'film'), 1_700_000_000, 1_700_000_000)
    expect(await statusOf('-z', join(old, 'film'), urlOf(files, '/film'))).toBe('304')
    utimesSync(join(old, 'film'), 1_600_000_000, 1_600_000_000)
    expect(await statusOf('-z', join(old, 'film'), urlOf(files, '/film'))).toBe('200')
  })

  describe.each<[string, () => RunningHost, string[]]>([
    ['HTTP/1.1', () => http, []],
    ['HTTP/2', () => http2, ['--http2-prior-knowledge']],
  ])('on %s', (version, host, options) => {
    const name = `/${version.replace('/', '-')}`
    const put = (target: string, ...args: string[]) =>
      statusOf(...options, '-T', at('files', 'film'), ...args, urlOf(host(), target))

    it('puts a file, with its length and in chunks, and gets it back', async () => {
      for (const more of [[], ['-H', 'Transfer-Encoding: chunked'], ['-H', 'Expect:']]) {
        const status = await put(name, ...(version === 'HTTP/2' ? [] : more))
        expect(['201', '204']).toContain(status)
      }
      await ask(...options, '-o', at('back'), urlOf(host(), name))
      expect(readFileSync(at('back')).equals(film)).toBe(true)
    })

    it.each([
      ['as soon as it asks whether to send', ['-H', 'Expect: 100-continue', '--expect100-timeout', '20']],
      ['while it is sending', ['-H', 'Expect:']],
    ])('gets a refusal %s (RFC 9110 §10.1.1)', async (_, more) => {
      await put(name)
      // curl stops its upload short and says so: over HTTP/2 the end of the answer must have come before.
      for (let i = 0; i < 10; i++) expect(await put(name, '-H', 'If-Match: "x"', ...more)).toBe('412')
      expect(await put('/%zz', ...more)).toBe('400')
    })

    it('has no complaint about any method', async () => {
      const json = ['-H', 'Content-Type: application/json']
      const merge = ['-H', 'Content-Type: application/merge-patch+json']
      const target = `${name}-item`
      const rows: readonly (readonly [string, string, ...string[]])[] = [
        ['201', target, '-X', 'PUT', ...json, '-d', '{"a":1}'],
        ['200', target, '-X', 'PATCH', ...merge, '-d', '{"a":2}'],
        ['200', target, '-I'],
        ['201', target, ...json, '-d', '{}'],
        ['204', target, '-X', 'OPTIONS'],
        ['501', target, '-X', 'PROPFIND'],
        ['204', target, '-X', 'DELETE'],
        ['204', '', '-X', 'OPTIONS', '--request-target', '*'],
      ]
      for (const [status, path, ...args] of rows) {
        const { code, stdout, stderr } = await ask(
          ...[...options, ...args, '-o', at('ignored'), '-w', '%{http_code}', urlOf(host(), path)],
        )
        expect([args.join(' '), code, stdout, stderr]).toEqual([args.join(' '), 0, status, ''])
      }
    })
  })
})

describe.runIf(wget)('wget', () => {
  it('goes on with a download that broke off, and leaves one that has not changed', async () => {
    const cwd = startDownload('wget')
    const get = (option: string) => run(wget!, ['-q', option, urlOf(files, '/film')], { cwd })
    expect(await recordAnswers(() => get('-c'))).toEqual([206])
    expect(readFileSync(join(cwd, 'film')).equals(film)).toBe(true)
    expect(await recordAnswers(() => get('-c'))).toEqual([416])
    expect(await recordAnswers(() => get('-N'))).toEqual([304])
  })
})

describe.runIf(aria2c)('aria2', () => {
  const get = (cwd: string, ...args: string[]) =>
    run(aria2c!, ['-q', '-x8', '-s8', '-k1M', '--no-conf', ...args, urlOf(files, '/film')], { cwd })

  it('gets a file over several connections', async () => {
    mkdirSync(at('aria2'))
    // At full speed the first connection may have all of it before there is a second.
    const answers = await recordAnswers(() => get(at('aria2'), '-s3', '--max-download-limit=8M'))
    expect(answers.filter((status) => status === 206).length).toBeGreaterThan(1)
    expect(readFileSync(at('aria2', 'film')).equals(film)).toBe(true)
    const again = await recordAnswers(() => get(at('aria2'), '--conditional-get=true', '--allow-overwrite=true'))
    expect(again).toEqual([304])
  })
})

describe.runIf(zsync && zsyncmake)('zsync', () => {
  it('gets what an old copy lacks, many ranges at once', async () => {
    const old = Buffer.from(film)
    for (let i = 0; i < SIZE; i += 200_000) other.copy(old, i, i, i + 100)
    startDownload('zsync', old)
    await run(zsyncmake!, ['-u', 'film', '-o', 'film.zsync', 'film'], { cwd: at('files') })
    const get = () => run(zsync!, ['-q', '-i', 'film', '-o', 'new', urlOf(files, '/film.zsync')], { cwd: at('zsync') })
    const answers = await recordAnswers(get)
    expect(readFileSync(at('zsync', 'new')).equals(film)).toBe(true)
    expect(new Set(answers.slice(1))).toEqual(new Set([206]))
  })
})

describe('a download that goes on after its file was replaced', () => {
  it.runIf(curl)('starts again with If-Range, by tag and by date (RFC 9110 §13.1.5)', async () => {
    writeFileSync(at('files', 'changing'), film)
    utimesSync(at('files', 'changing'), 1_700_000_000, 1_700_000_000)
    const { headers } = await files.send({ method: 'HEAD', path: '/changing' })
    const resume = async (value: unknown) => {
      const url = urlOf(files, '/changing')
      const args = ['-sS', '-r', `${HALF}-`, '-H', `If-Range: ${value}`, '-o', at('rest'), '-w', '%{http_code}', url]
      return [(await run(curl!, args)).stdout, readFileSync(at('rest'))] as const
    }
    const values = [headers['etag'], headers['last-modified']]
    for (const value of values) {
      const [status, content] = await resume(value)
      expect([status, content.equals(film.subarray(HALF))]).toEqual(['206', true])
    }
    writeFileSync(at('files', 'changing'), other)
    for (const value of values) {
      const [status, content] = await resume(value)
      expect([status, content.equals(other)]).toEqual(['200', true])
    }
  })
})
