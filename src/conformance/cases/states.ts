import { isResource } from '../../stores/rules.ts'
import type { Expectation } from '../../stores/types.ts'
import { create, factsOf, put, readResource, remove, written } from '../calls.ts'
import { claim, claimBytes, claimContent, claimEqual, claimResource, claimStored, readContent } from '../claims.ts'
import { binary, createBytes, named, text } from '../samples.ts'
import { type Bench, type Case, it } from '../types.ts'

export const reading: readonly Case[] = [
  it('finds nothing at a path that was never written', async ({ store, path }) => {
    claimEqual(await store.read(path(1)), undefined, 'Nothing was written, so there is nothing to read.')
    claimEqual(await store.read(path(1), { hidden: true }), undefined, 'Nothing was written, nothing is hidden.')
  }),
  it('returns the bytes, the media type and the size that were written', async ({ store, path, content }) => {
    for (const seed of [1, 2, 50, 99]) {
      const given = content(seed, seed)
      await put(store, path(seed), given)
      await claimStored(store, path(seed), given, 'What is read is not what was written.')
    }
  }),
  it('names the path of what it returns', async ({ store, path, keep }) => {
    await keep(7, 1)
    const resource = await readResource(store, path(7))
    claimEqual(resource.path, path(7), 'A resource carries the path under which it was read.')
    claim(resource.hidden !== true, 'A resource that was not hidden is marked as hidden.')
  }),
  it('keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write', {
    needs: ['contents'],
  }, async ({ store, path, collection }) => {
    const names = ['contentEncoding', 'contentLanguage', 'filename'] as const
    // The longest file name that the service takes from a request, and characters of two, three and four bytes in it.
    const filename = `"🜚" ${'ä世'.repeat(123)}.pdf`
    const fields = { contentEncoding: 'gzip', contentLanguage: 'de, fr', filename }
    const described = { contentType: 'application/pdf', body: 'x', ...fields }
    const own = await put(store, path(1), described)
    const member = await create(store, collection, described)
    const { items } = await store.list(collection, { limit: 5 })
    const found = [own, await store.read(path(1)), member, await store.read(member.path), ...items]
    const removed = await remove(store, member.path)
    if (removed.outcome === 'removed') found.push(removed.resource)
    claimEqual(found.length, 7, 'Two members were written, and one of them was removed.')
    for (const state of found) {
      const resource = claimResource(state, 'The resource was not found.')
      for (const name of names) claimEqual(resource[name], fields[name], `${name} was not kept.`)
    }
    await put(store, path(1), text('y'))
    const second = await readResource(store, path(1))
    for (const name of names)
      claimEqual(second[name], undefined, `${name} belongs to the content before and has stayed.`)
  }),
  it('keeps every byte: all 256 values, U+0000, a byte order mark, text beyond ASCII, nothing at all', {
    needs: ['contents'],
  }, async ({ store, path }) => {
    const samples = [
      binary(Buffer.from(Array.from({ length: 256 }, (_, i) => i))),
      binary(createBytes(5000, 3).subarray(17, 1234)),
      binary(new Uint8Array([0])),
      binary(new Uint8Array(0)),
      text('a\u0000b\u0000'),
      text('Grüße, 世界, 🜚'),
      text('\ufeffx'),
      binary(Buffer.from('\ufeffx')),
      { contentType: 'Text/HTML;Charset="utf-8"', body: '<p>' },
      text('%s \\ \' " $1 ? -- \r\n'),
      text(''),
    ]
    for (const [name, sample] of named(samples)) {
      await put(store, path(name), sample)
      await claimStored(store, path(name), sample, `Sample ${name} came back changed.`)
    }
  }),
  it('compares paths exactly: letter case, normal forms, blanks, dots, percent signs, quotes', {
    needs: ['paths'],
  }, async ({ store, collection }) => {
    const names = [
      ...['a', 'A', 'a ', ' a', 'a.', '.', '..', '...', 'con', 'nul.txt', 'a:b', 'a\\b', 'a%2Fb', '%', '_', '*', '?'],
      ...['\u00e9', 'e\u0301', '\u212b', '\u00c5', 'ß', 'ss', 'ſ', 'İ', 'i', 'ı', '世界', '🜚', '\uffff', '~'],
      ...["'; DROP TABLE users; --", '"', '$1', ':x', '@x', '__proto__', 'constructor', 'hasOwnProperty', 'toString'],
      ...['1', '01', '001', '1.0', '+1', '-1', '1e3', '0', '00', '\t', '\u00a0', 'x'.repeat(255), 'x'.repeat(256)],
    ]
    for (const [index, name] of names.entries()) await put(store, `${collection}/${name}`, text(String(index)))
    for (const [index, name] of names.entries()) {
      const state = await store.read(`${collection}/${name}`)
      await claimContent(state, text(String(index)), `The name ${JSON.stringify(name)} is taken for another one.`)
    }
    claim(!isResource(await store.read(`${collection}/B`)), 'A path was found that was never written.')
  }),
  it('keeps paths that are members of nothing, and paths without a leading slash', {
    needs: ['paths'],
  }, async ({ store }) => {
    const paths = ['/', '/a', '/a/', '/a//', 'queue/1', 'queue/x/y']
    for (const path of paths) await put(store, path, text(path))
    for (const path of paths) await claimStored(store, path, text(path), `The path ${path} is taken for another one.`)
  }),
  it('gives another object for another state', async ({ store, path, keep }) => {
    let before: unknown
    for (const seed of [1, 2, 3]) {
      await keep(1, seed)
      const after = await store.read(path(1))
      const sentence = 'A state has changed, and is still the same object, on which callers keep what they derive.'
      claim(after !== before, sentence)
      before = after
    }
  }),
  it('gives states and pages that stay as they are, whatever is read afterwards', async (bench) => {
    const { store, path, collection, content, keep } = bench
    for (const name of [1, 2, 3]) await keep(name)
    const [state, page] = [await store.read(path(1)), await store.list(collection, { limit: 1 })]
    for (const name of [2, 3]) await store.read(path(name))
    await store.list(collection, { limit: 3 })
    await claimContent(state, content(1, 1), 'What a read has returned changes with the next one.')
    claimEqual(page.items.length, 1, 'A page that was returned changes with the next one.')
    await claimContent(page.items[0], content(1, 1), 'A page that was returned changes with the next one.')
  }),
  it('tells the same state, with all its facts, whether content is asked for or not', async (bench) => {
    const { store, path, content, keep, modes } = bench
    for (const [name, mode] of named([undefined, ...modes])) {
      await keep(name)
      if (mode !== undefined) await remove(store, path(name), mode)
      // Each way more than once: a store may keep what it has given, and has to tell the ways apart.
      for (const hidden of [false, true, false]) {
        await store.read(path(name), { hidden, metadataOnly: true })
        const facts = await store.read(path(name), { hidden, metadataOnly: true })
        const whole = await store.read(path(name), { hidden })
        const sentence = `A read without content tells another state than one with it (${mode}, hidden: ${hidden}).`
        claimEqual(isResource(facts), isResource(whole), sentence)
        const isShown = mode === undefined || (mode === 'hide' && hidden)
        claimEqual(isResource(whole), isShown, `Other reads change what a read finds (${mode}, hidden: ${hidden}).`)
        if (isShown) await claimContent(whole, content(name, name), 'A read has lost the content after one without it.')
        if (isResource(facts) && isResource(whole)) claimEqual(factsOf(facts), factsOf(whole), sentence)
        else claimEqual(facts, whole, sentence)
      }
    }
  }),
]

/** Other texts that a careless comparison takes for this version. */
function namesLike(version: string): string[] {
  const changed = [version.toUpperCase(), version.toLowerCase()].filter((text) => text !== version)
  return [...changed, `0${version}`, `${version}.0`, `${version}x`]
}

/** Fails unless a write of the member 1 is refused, tells the current state, and changes nothing. */
async function claimRefused({ store, path, content }: Bench, expect: Expectation, why: string): Promise<void> {
  const before = await store.read(path(1))
  const result = await store.write(path(1), content(77, 1), { expect })
  claimEqual(result.outcome, 'conflict', why)
  const current = result.outcome === 'conflict' ? result.current : undefined
  const after = await store.read(path(1))
  if (before === undefined) {
    claimEqual(current, undefined, 'A refused write tells of a state although there is none.')
    claimEqual(after, undefined, 'A refused write has left something.')
    return
  }
  const found = claimResource(before, 'The resource was not found.')
  const { version } = claimResource(after, 'A refused write removed it.')
  claimEqual(version, found.version, 'A refused write changed the state.')
  const shown = claimResource(current, 'A refused write does not return the current state.')
  const sentence = 'A refused write returns another state than the current one.'
  claimEqual(factsOf(shown), factsOf(found), sentence)
  claimBytes(await readContent(shown), await readContent(found), sentence)
}

export const writing: readonly Case[] = [
  it('creates, then replaces, and says which', async ({ store, path, content, modes }) => {
    const first = await store.write(path(1), content(1, 1), { expect: 'any' })
    claimEqual(first.outcome, 'created', 'The first write of a path creates.')
    const second = await store.write(path(1), content(2, 1), { expect: 'any' })
    claimEqual(second.outcome, 'replaced', 'The second write of a path replaces.')
    await claimStored(store, path(1), content(2, 1), 'The second write was not kept.')
    for (const mode of modes) {
      await remove(store, path(1), mode)
      const anew = await store.write(path(1), content(3, 1), { expect: 'any' })
      claimEqual(anew.outcome, 'created', `A write of a path that was removed creates (${mode}).`)
    }
  }),
  it('returns from a write the state that is read afterwards', async ({ store, path, content }) => {
    for (const seed of [1, 2, 3]) {
      const given = content(seed, 1)
      const result = written(await store.write(path(1), given, { expect: 'any' }), 'The write was refused.')
      const found = await readResource(store, path(1))
      claimEqual(factsOf(found), factsOf(result), 'The result of the write and the next read tell different facts.')
      await claimContent(result, given, 'The result of the write has other content than was given.')
    }
  }),
  it("expecting 'absent', creates once and refuses the second time", async (bench) => {
    const { store, path, content } = bench
    const result = await store.write(path(1), content(1, 1), { expect: 'absent' })
    claimEqual(result.outcome, 'created', 'Nothing was there, so the write had to happen.')
    await claimRefused(bench, 'absent', 'A resource was overwritten by a write that expected none.')
  }),
  it("expecting 'present', refuses to create and replaces what is there", async (bench) => {
    const { store, path, content, keep } = bench
    await claimRefused(bench, 'present', 'A write that expected a resource created one.')
    await keep(1)
    const result = await store.write(path(1), content(2, 1), { expect: 'present' })
    claimEqual(result.outcome, 'replaced', 'A resource was there, so the write had to happen.')
  }),
  it('expecting a version, replaces that state and no other', async (bench) => {
    const { store, path, content, keep } = bench
    await claimRefused(bench, { version: 'nonesuch' }, 'A write that expected a version created a resource.')
    const first = await keep(1)
    const result = await store.write(path(1), content(2, 1), { expect: { version: first.version } })
    claimEqual(result.outcome, 'replaced', 'The version was the current one, so the write had to happen.')
    const stale = { version: first.version }
    await claimRefused(bench, stale, 'A write that expected a version of the past happened.')
    await claimRefused(bench, { version: '' }, 'A write that expected the empty version happened.')
    for (const version of namesLike((await readResource(store, path(1))).version))
      await claimRefused(bench, { version }, `A write that expected another version happened: ${version}.`)
    await claimStored(store, path(1), content(2, 1), 'The content is not that of the last write.')
  }),
  it('leaves other paths alone', async ({ store, path, keep }) => {
    const versions = new Map<number, string>()
    for (const name of [1, 2, 3, 12]) versions.set(name, (await keep(name)).version)
    await keep(2, 20)
    for (const name of [1, 3, 12]) {
      const state = claimResource(await store.read(path(name)), 'A write removed another resource.')
      claimEqual(state.version, versions.get(name), 'A write changed another resource.')
    }
  }),
  it('expecting a version of another path, refuses', async (bench) => {
    const { store, path, keep } = bench
    const own = await keep(1)
    const other = await keep(2)
    // Paths may count alike: then the versions prove nothing.
    if (own.version === other.version) return
    await claimRefused(bench, { version: other.version }, 'A version of another path was good for a write.')
    const removed = await store.remove(path(1), { expect: { version: other.version }, mode: 'erase' })
    claimEqual(removed.outcome, 'conflict', 'A version of another path was good for a removal.')
  }),
]
