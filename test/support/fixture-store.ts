import { gzipSync } from 'node:zlib'
import { isResource, sizeOf } from '../../src/stores/rules.ts'
import type { Content, Expectation, ResourceStore, StoredResource, StoredState } from '../../src/stores/types.ts'

export const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
/** The date of every fixture that has one: long over, so that its second names one state. */
export const DATE = 'Mon, 06 Jul 2020 10:00:00 GMT'
export const EARLIER = 'Mon, 06 Jul 2020 09:59:59 GMT'
export const LATER = 'Mon, 06 Jul 2020 10:00:01 GMT'
export const OLD = 'Mon, 01 Jan 1990 00:00:00 GMT'
export const TAG = '"e"'
export const GZIPPED: Buffer = gzipSync(ALPHABET)

type Fixture = Partial<StoredResource> & Pick<StoredResource, 'body'>

const dated = { lastModified: Date.parse(DATE) }
const binary = { contentType: 'application/octet-stream', body: Buffer.from(ALPHABET) }

/** Resources of which tags, dates and bytes are known to the last character. */
const FIXTURES: Readonly<Record<string, Fixture>> = {
  '/docs/a.bin': { ...binary, ...dated, entityTag: TAG },
  '/docs/w.bin': { ...binary, ...dated, entityTag: 'W/"w"' },
  '/docs/n.bin': { ...binary, entityTag: '' },
  '/docs/d.bin': { ...binary, ...dated, entityTag: '' },
  '/docs/z.bin': { ...binary, ...dated, entityTag: '"z"', body: new Uint8Array(0) },
  '/docs/comma.bin': { ...binary, entityTag: '"a,b;c"' },
  '/docs/version.bin': { ...binary, version: 'a b/"ü"' },
  '/docs/part.bin': { ...binary, entityTag: '"p"', lastModified: Date.parse(DATE) + 700 },
  '/docs/twice.bin': { ...binary, ...dated, entityTag: '"t"', dateIsStrong: false },
  '/docs/future.bin': { ...binary, entityTag: '"f"', lastModified: Date.parse('Sun, 06 Jul 2200 10:00:00 GMT') },
  '/docs/coded.gz': { ...dated, contentType: 'text/plain', contentEncoding: 'gzip', entityTag: '"g"', body: GZIPPED },
  '/docs/text.txt': { ...dated, contentType: 'text/plain; charset=utf-8', entityTag: '"x"', body: 'plain text' },
  '/docs/stream.bin': { ...binary, ...dated, entityTag: '"s"', size: 26, body: largeBody(ALPHABET) },
  '/users/1': { ...dated, contentType: 'application/json', entityTag: '"u"', body: '{"id":1,"name":"Ada"}' },
}

function largeBody(text: string): StoredResource['body'] {
  return {
    async *open(first, last) {
      for (const character of text.slice(first, last + 1)) yield Buffer.from(character)
    },
  }
}

/** A store that tells what it was asked for. */
export interface FixtureStore extends ResourceStore {
  /** The paths that were read, in order. */
  readonly reads: string[]
  /** The paths that were written or removed, in order. */
  readonly writes: string[]
}

/**
 * A store as a team may have one of its own: it supplies entity tags, weak ones and none at all, dates and none at all.
 * Removed paths leave a tombstone; `/docs/gone` has one from the start.
 */
export function createFixtureStore(): FixtureStore {
  const states = new Map<string, Exclude<StoredState, undefined>>()
  for (const [path, fixture] of Object.entries(FIXTURES)) states.set(path, complete(path, fixture))
  states.set('/docs/gone', { removed: true, path: '/docs/gone', removedAt: Date.parse(DATE) })
  const reads: string[] = []
  const writes: string[] = []
  let revision = 1

  function isExpected(current: StoredState, expect: Expectation): boolean {
    if (expect === 'any') return true
    if (expect === 'absent' || !isResource(current)) return expect === 'absent' && !isResource(current)
    return expect === 'present' || expect.version === current.version
  }

  async function put(path: string, content: Content): Promise<StoredResource> {
    writes.push(path)
    const body = typeof content.body === 'string' ? content.body : await gather(content.body)
    const version = `v${++revision}`
    const resource = complete(path, { ...content, version, body, lastModified: Date.now(), dateIsStrong: false })
    states.set(path, resource)
    return resource
  }

  return {
    reads,
    writes,
    read(path, options) {
      reads.push(path)
      const state = states.get(path)
      // What a store may do: leave out content that is not needed.
      return options?.metadataOnly === true && isResource(state) ? { ...state, body: new Uint8Array(0) } : state
    },
    async write(path, content, { expect }) {
      const current = states.get(path)
      if (!isExpected(current, expect)) return { outcome: 'conflict', current }
      return { outcome: isResource(current) ? 'replaced' : 'created', resource: await put(path, content) }
    },
    async create(collection, content) {
      const name = String(++revision)
      const resource = await put(`${collection}/${name}`, typeof content === 'function' ? content(name) : content)
      return { outcome: 'created', resource }
    },
    remove(path, { expect }) {
      const current = states.get(path)
      if (!isResource(current) && expect === 'any') return { outcome: 'absent', current }
      if (!isResource(current) || !isExpected(current, expect)) return { outcome: 'conflict', current }
      writes.push(path)
      states.set(path, { removed: true, path, removedAt: Date.now() })
      return { outcome: 'removed', resource: current }
    },
    list(collection) {
      const items = [...states.values()].filter(isResource)
      return { items: items.filter(({ path }) => path.startsWith(`${collection}/`)) }
    },
  }
}

function complete(path: string, fixture: Fixture): StoredResource {
  const { body } = fixture
  const size = fixture.size ?? (typeof body === 'string' || body instanceof Uint8Array ? sizeOf(body) : 0)
  return { path, version: `v1 of ${path}`, contentType: 'application/octet-stream', size, ...fixture }
}

async function gather(body: Content['body']): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body
  const chunks: Uint8Array[] = []
  for await (const chunk of body as AsyncIterable<Uint8Array>) chunks.push(chunk.slice())
  return Buffer.concat(chunks)
}
