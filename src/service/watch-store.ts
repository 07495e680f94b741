import { isHttpError } from '../core/errors.ts'
import { isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { createAvailability, type Log } from '../core/operator-log.ts'
import type { ResourceStore } from '../stores/types.ts'

/**
 * Whether a store could not serve. Unexpected errors, which are answered 500, are reported one by one already; a store that is
 * indexing reports that itself, and serves everything but lists.
 */
export function isStoreFailure(error: unknown): boolean {
  return isHttpError(error) && error.status >= 500 && error.code !== 'ERR_INDEXING'
}

/**
 * The same store, which reports when it fails and when it works again. An `HttpError` 503 is not an unexpected error:
 * without this report nothing would say that the database is away.
 */
export function watchStore(store: ResourceStore, log: Log): ResourceStore {
  const availability = createAvailability('store', 'The store works again.')
  availability.watch(log)
  let failing: 'nothing' | 'writes' | 'everything' = 'nothing'

  function succeed(kind: 'read' | 'write'): void {
    // A full disk or a database that has become read-only: that it can be read changes nothing.
    if (failing === 'writes' && kind === 'read') return
    failing = 'nothing'
    availability.succeed()
  }

  function fail(kind: 'read' | 'write', error: unknown): never {
    if (isStoreFailure(error)) {
      if (kind === 'read') failing = 'everything'
      else if (failing === 'nothing') failing = 'writes'
      const { status } = error as { status: number }
      availability.fail((reason) => `The store fails: ${reason}; requests that need it are answered ${status}.`, error)
    }
    throw error
  }

  /** Makes a call, and reports how it ends. */
  function observe<Value>(kind: 'read' | 'write', call: () => MaybePromise<Value>): MaybePromise<Value> {
    let result: MaybePromise<Value>
    try {
      result = call()
    } catch (error) {
      return fail(kind, error)
    }
    const done = (value: Value): Value => {
      if (failing !== 'nothing') succeed(kind)
      return value
    }
    return isPromise(result) ? Promise.resolve(result).then(done, (error) => fail(kind, error)) : done(result)
  }

  return {
    ...(store.supports === undefined ? {} : { supports: store.supports }),
    read: (path, options) => observe('read', () => store.read(path, options)),
    list: (collection, options) => observe('read', () => store.list(collection, options)),
    write: (path, content, options) => observe('write', () => store.write(path, content, options)),
    create: (collection, content, options) => observe('write', () => store.create(collection, content, options)),
    remove: (path, options) => observe('write', () => store.remove(path, options)),
    ...(store.stage === undefined
      ? {}
      : { stage: (body, options) => observe('write', () => store.stage!(body, options)) }),
  }
}
