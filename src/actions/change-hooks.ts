import { copyBytes } from '../core/byte-blocks.ts'
import { publishFailure } from '../core/diagnostics.ts'
import type { Exchange } from '../core/exchange.ts'
import { logFailure, type ReportFailure } from '../core/failures.ts'
import { atOnce, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { noteHookFailure } from '../core/operator-log.ts'
import { waitAtMost } from '../core/time.ts'
import { isLanguageList } from '../protocol/content-language.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { sizeOf } from '../stores/rules.ts'
import type { RelatedWrite } from '../stores/types.ts'
import type { Change, Outbox, OutboxWrite } from './hook-types.ts'
import { indexOwnContent } from './indexing.ts'
import { parseStored } from './resource-view.ts'
import type { Route } from './route.ts'

/**
 * Asks the outbox of a definition what is written with a change.
 * @throws TypeError for an outbox that gives anything but writes: a step must not go on without them
 */
export function readOutbox(route: Route, outbox: Outbox, change: Change): readonly RelatedWrite[] {
  const writes: unknown = atOnce(callNoting(outbox, change))
  const owner = `The outbox of ${route.definition}`
  if (isPromise(writes)) {
    throw new TypeError(`${owner} must return a list of writes, not a promise: the commit does not wait for it.`)
  }
  if (!Array.isArray(writes)) throw new TypeError(`${owner} must return a list of writes such as [{ path, content }].`)
  const removesBelow = change.kind === 'deleted' && route.deletion !== 'soft' && route.context.isParent(route)
  for (const write of writes as readonly unknown[]) {
    const path = checkWrite(owner, write, change)
    if (removesBelow && path.startsWith(`${change.path}/`)) {
      throw new TypeError(
        `${owner} must not write below a resource that is removed with all that is below it: ${path}.`,
      )
    }
  }
  return (writes as readonly OutboxWrite[]).map((write) => completeOutboxWrite(route, write))
}

/** Stores call it, and pass on what it throws. */
function callNoting(outbox: Outbox, change: Change): unknown {
  try {
    return outbox(change)
  } catch (error) {
    noteHookFailure(error)
    throw error
  }
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
  const body: unknown = atOnce(atOnce(content)?.body)
  if (typeof content?.contentType !== 'string' || !(typeof body === 'string' || body instanceof Uint8Array)) {
    throw new TypeError(`${owner} must give each write content with a contentType and a body of text or bytes.`)
  }
  const { contentType, contentLanguage, filename } = content
  // Otherwise every GET of the resource would fail.
  const isSendable =
    parseMediaType(contentType) !== undefined &&
    (contentLanguage === undefined || isLanguageList(contentLanguage)) &&
    (filename === undefined || typeof filename === 'string')
  if (isSendable) return path
  throw new TypeError(
    `${owner} must give each write content that fields can describe: contentType is a media type, contentLanguage a list ` +
      'of language tags, filename text.',
  )
}

/** A write of the outbox as the store takes it. One that lies in a collection of the service is indexed by its rules. */
function completeOutboxWrite({ context }: Route, { path, content: given, expect = 'any' }: OutboxWrite): RelatedWrite {
  const { contentType, contentEncoding, contentLanguage, filename } = given
  // The hook may use an object or a buffer again while the step is under way.
  const body = typeof given.body === 'string' ? given.body : copyBytes(given.body)
  const content = { contentType, contentEncoding, contentLanguage, filename, body }
  const own = context.findRoute(path)
  if (own?.indexing === undefined) return { path, content, expect }
  const stored = { ...content, path, version: '', size: sizeOf(body), body }
  const value = parseStored(stored)
  return { path, content: value === undefined ? content : indexOwnContent(own, path, content, value), expect }
}

/** Runs the `afterCommit` hooks of a service. */
export interface AfterCommits {
  /**
   * Calls a hook once the response is decided, in the asynchronous context of the caller. Hooks are called in the order in
   * which they are announced; the next one does not wait for the promise of the one before.
   * @param exchange the request that is the cause; `undefined` for accepted work
   */
  announce(call: () => MaybePromise<unknown>, exchange: Exchange | undefined): void
  /** Fulfilled when the hooks that were announced have ended, or after 5 seconds. */
  drain(): Promise<void>
}

/** Milliseconds. A hook that hangs must not keep the process from ending. */
const PATIENCE = 5_000

/** @param report receives the failures of hooks that a request is the cause of */
export function createAfterCommits(report: ReportFailure): AfterCommits {
  const running = new Set<Promise<void>>()

  async function run(call: () => MaybePromise<unknown>, exchange: Exchange | undefined): Promise<void> {
    try {
      await call()
    } catch (error) {
      if (exchange !== undefined) return report(error, exchange, 'committed')
      publishFailure({ error, stage: 'background' })
      logFailure('afterCommit of accepted work', error)
    }
  }

  return {
    announce(call, exchange) {
      const done = new Promise<void>((resolve) => {
        setImmediate(() => resolve(run(call, exchange)))
      }).finally(() => running.delete(done))
      running.add(done)
    },

    async drain() {
      const end = performance.now() + PATIENCE
      // A hook may cause further changes.
      while (running.size > 0) {
        const rest = end - performance.now()
        if (rest <= 0) return
        await waitAtMost(rest, Promise.all(running))
      }
    },
  }
}
