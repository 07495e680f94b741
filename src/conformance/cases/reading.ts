import { isResource } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimResource, claimStored } from '../claims.ts'
import { binary, createBytes, factsOf, put, readResource, remove, text } from '../samples.ts'
import type { Case } from '../types.ts'

export const reading: readonly Case[] = [
  {
    title: 'finds nothing at a path that was never written',
    async run({ store, path }) {
      claimEqual(await store.read(path(1)), undefined, 'Nothing was written, so there is nothing to read.')
      claimEqual(await store.read(path(1), { hidden: true }), undefined, 'Nothing was written, nothing is hidden.')
    },
  },
  {
    title: 'returns the bytes, the media type and the size that were written',
    async run({ store, path, content }) {
      for (const seed of [1, 2, 50, 99]) {
        const given = content(seed, path(seed))
        await put(store, path(seed), given)
        await claimStored(store, path(seed), given, 'What is read is not what was written.')
      }
    },
  },
  {
    title: 'names the path of what it returns',
    async run({ store, path, content }) {
      await put(store, path(7), content(1, path(7)))
      const resource = await readResource(store, path(7))
      claimEqual(resource.path, path(7), 'A resource carries the path under which it was read.')
      claim(resource.hidden !== true, 'A resource that was not hidden is marked as hidden.')
    },
  },
  {
    title: 'gives every fact, with or without the content, when only metadata are asked for',
    async run({ store, path, content }) {
      await put(store, path(1), content(31, path(1)))
      const whole = await readResource(store, path(1))
      const facts = claimResource(await store.read(path(1), { metadataOnly: true }), 'The resource was not found.')
      claimEqual(factsOf(facts), factsOf(whole), 'A read of the metadata tells other facts than a read of everything.')
    },
  },
  {
    title: 'keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write',
    needs: ['contents'],
    async run({ store, path }) {
      const fields = { contentEncoding: 'gzip', contentLanguage: 'de, fr', filename: 'Bericht "ä".pdf' }
      await put(store, path(1), { contentType: 'application/pdf', body: 'x', ...fields })
      const first = await readResource(store, path(1))
      for (const name of ['contentEncoding', 'contentLanguage', 'filename'] as const) {
        claimEqual(first[name], fields[name], `${name} was not kept.`)
      }
      await put(store, path(1), text('y'))
      const second = await readResource(store, path(1))
      for (const name of ['contentEncoding', 'contentLanguage', 'filename'] as const) {
        claimEqual(second[name], undefined, `${name} belongs to the content before and has stayed.`)
      }
    },
  },
  {
    title: 'keeps every byte: all 256 values, U+0000, text beyond ASCII, nothing at all',
    needs: ['contents'],
    async run({ store, path }) {
      const samples = [
        binary(Buffer.from(Array.from({ length: 256 }, (_, i) => i))),
        binary(createBytes(5000, 3).subarray(17, 1234)),
        binary(new Uint8Array([0])),
        binary(new Uint8Array(0)),
        text('a\u0000b\u0000'),
        text('Grüße, 世界, 🜚'),
        text('%s \\ \' " $1 ? -- \r\n'),
        text(''),
      ]
      for (const [index, sample] of samples.entries()) {
        await put(store, path(index), sample)
        await claimStored(store, path(index), sample, `Sample ${index} came back changed.`)
      }
    },
  },
  {
    title: 'compares paths exactly: letter case, normal forms, blanks, dots, percent signs, quotes',
    needs: ['paths'],
    async run({ store, collection }) {
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
    },
  },
  {
    title: 'keeps paths that are members of nothing, and paths without a leading slash',
    needs: ['paths'],
    async run({ store }) {
      const paths = ['/', '/a', '/a/', '/a//', 'queue/1', 'queue/x/y']
      for (const path of paths) await put(store, path, text(path))
      for (const path of paths) {
        await claimStored(store, path, text(path), `The path ${path} is taken for another one.`)
      }
    },
  },
  {
    title: 'sees the same state whether content is asked for or not',
    async run({ store, path, content, modes }) {
      for (const [name, mode] of [undefined, ...modes].entries()) {
        await put(store, path(name), content(name, path(name)))
        if (mode !== undefined) await remove(store, path(name), mode)
        for (const hidden of [false, true]) {
          const whole = await store.read(path(name), { hidden })
          const facts = await store.read(path(name), { hidden, metadataOnly: true })
          const sentence = `A read without content sees another state than one with it (${mode}, hidden: ${hidden}).`
          claimEqual(isResource(facts), isResource(whole), sentence)
          if (isResource(facts) && isResource(whole)) claimEqual(facts.version, whole.version, sentence)
          else claimEqual(facts, whole, sentence)
        }
      }
    },
  },
]
