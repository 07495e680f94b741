import { isHttpError } from '../../core/errors.ts'
import type { Content, ResourceStore } from '../../stores/types.ts'
import { put, readResource } from '../calls.ts'
import { claim, claimEqual, claimStored } from '../claims.ts'
import { text } from '../samples.ts'
import { type Case, it } from '../types.ts'

/** Fails unless content is kept, or refused for what is long about it. @param long what that is */
async function claimKept(store: ResourceStore, path: string, content: Content, long: string): Promise<void> {
  try {
    await put(store, path, content)
  } catch (error) {
    claim(isHttpError(error) && error.status < 500, `${long} makes the store fail with ${String(error)}.`)
    return
  }
  const sentence = `${long} is taken for another one.`
  await claimStored(store, path, content, sentence)
  claimEqual((await readResource(store, path)).contentLanguage, content.contentLanguage, sentence)
}

/** What clients may send, and what has no place in many a column. */
export const longValues: readonly Case[] = [
  it('keeps a path of 2048 bytes, or refuses it with an HttpError below 500', { needs: ['paths'] }, async (bench) => {
    const { store, path } = bench
    await claimKept(store, path('x'.repeat(2048 - path('').length)), text('long'), 'A path of 2048 bytes')
  }),
  it('keeps a long media type and a long list of languages, or refuses them with an HttpError below 500', {
    needs: ['contents'],
  }, async ({ store, path }) => {
    const contentType = `text/plain;x=${'x'.repeat(987)}`
    await claimKept(store, path(1), { contentType, body: 'x' }, 'A media type of 1000 characters')
    const contentLanguage = Array(250).fill('de').join(', ')
    await claimKept(store, path(2), { ...text('x'), contentLanguage }, 'A list of 250 languages')
  }),
]
