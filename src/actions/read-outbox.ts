import { atOnce, isPromise } from '../core/maybe-promise.ts'
import { isLanguageList } from '../protocol/content-disposition.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { type RelatedWrite, sizeOf } from '../stores/types.ts'
import type { Change, Outbox, OutboxWrite } from './change-types.ts'
import { parseStored } from './hooks.ts'
import { indexOwnContent } from './indexing.ts'
import type { Route } from './route.ts'

/**
 * Asks the outbox of a definition what is written with a change.
 * @throws TypeError for an outbox that gives anything but writes: a step must not go on without them
 */
export function readOutbox(route: Route, outbox: Outbox, change: Change): readonly RelatedWrite[] {
  const writes: unknown = atOnce(outbox(change))
  const owner = `The outbox of ${route.definition}`
  if (isPromise(writes)) {
    throw new TypeError(`${owner} must return a list of writes, not a promise: the commit does not wait for it.`)
  }
  if (!Array.isArray(writes)) throw new TypeError(`${owner} must return a list of writes such as [{ path, content }].`)
  const isBelowRemoved = (path: string): boolean => path.startsWith(`${change.path}/`) && removesBelow(route, change)
  for (const write of writes as readonly unknown[]) {
    const path = checkWrite(owner, write, change)
    if (isBelowRemoved(path)) {
      throw new TypeError(
        `${owner} must not write below a resource that is removed with all that is below it: ${path}.`,
      )
    }
  }
  return (writes as readonly OutboxWrite[]).map((write) => completeOutboxWrite(route, write))
}

const NAMES: readonly string[] = ['path', 'content', 'expect']

/** @returns its path @throws TypeError */
function checkWrite(owner: string, write: unknown, change: Change): string {
  const { path, content, expect }: Partial<OutboxWrite> = write ?? {}
  if (typeof path !== 'string' || !path.startsWith('/') || path === change.path) {
    throw new TypeError(`${owner} must give each write an absolute path that is not the path of the change.`)
  }
  const unknown = Object.keys(write as object).find((name) => !NAMES.includes(name))
  if (unknown !== undefined) {
    throw new TypeError(`${owner} gives a write "${unknown}", which has no effect. A write has: ${NAMES.join(', ')}.`)
  }
  if (expect !== undefined && expect !== 'any' && expect !== 'absent') {
    throw new TypeError(`${owner} must give each write as expect one of 'any', 'absent'.`)
  }
  const body: unknown = content?.body
  if (typeof content?.contentType !== 'string' || !(typeof body === 'string' || body instanceof Uint8Array)) {
    throw new TypeError(`${owner} must give each write content with a contentType and a body of text or bytes.`)
  }
  checkFields(owner, content)
  return path
}

/** @throws TypeError for what could not be sent as a field: every GET of the resource would fail */
function checkFields(owner: string, { contentType, contentLanguage, filename }: OutboxWrite['content']): void {
  const isSendable =
    parseMediaType(contentType) !== undefined &&
    (contentLanguage === undefined || isLanguageList(contentLanguage)) &&
    (filename === undefined || typeof filename === 'string')
  if (isSendable) return
  throw new TypeError(
    `${owner} must give each write content that fields can describe: contentType is a media type, contentLanguage a list ` +
      'of language tags, filename text.',
  )
}

function removesBelow(route: Route, { kind }: Change): boolean {
  return kind === 'deleted' && route.deletion !== 'soft' && route.context.isParent(route)
}

/** A write of the outbox as the store takes it. One that lies in a collection of the service is indexed by its rules. */
function completeOutboxWrite({ context }: Route, { path, content, expect = 'any' }: OutboxWrite): RelatedWrite {
  const own = context.findRoute(path)
  if (own?.indexing === undefined) return { path, content, expect }
  const { body } = content
  const stored = { ...content, path, version: '', size: sizeOf(body), body }
  const value = parseStored(stored)
  return { path, content: value === undefined ? content : indexOwnContent(own, path, content, value), expect }
}
