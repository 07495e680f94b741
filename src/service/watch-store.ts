import { createAvailability } from '../core/availability.ts'
import { isHttpError } from '../core/errors.ts'
import { isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import type { Log } from '../core/operator-log.ts'
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
    if (failing === 'nothing' || (failing === 'writes' && kind === 'read')) return
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

  const readDone = (): void => succeed('read')
  const writeDone = (): void => succeed('write')
  const readFailed = (error: unknown): never => fail('read', error)
  const writeFailed = (error: unknown): never => fail('write', error)

  function observe<Value>(
    result: MaybePromise<Value>,
    done: () => void,
    failed: (error: unknown) => never,
  ): MaybePromise<Value> {
    if (isPromise(result)) {
      return result.then((value) => {
        done()
        return value
      }, failed)
    }
    done()
    return result
  }

  function run<Value>(kind: 'read' | 'write', call: () => MaybePromise<Value>): MaybePromise<Value> {
    const failed = kind === 'read' ? readFailed : writeFailed
    let result: MaybePromise<Value>
    try {
      result = call()
    } catch (error) {
      return failed(error)
    }
    return observe(result, kind === 'read' ? readDone : writeDone, failed)
  }

  return {
    ...(store.supports === undefined ? {} : { supports: store.supports }),
    read: (path, options) => run('read', () => store.read(path, options)),
    list: (collection, options) => run('read', () => store.list(collection, options)),
    write: (path, content, options) => run('write', () => store.write(path, content, options)),
    create: (collection, content, options) => run('write', () => store.create(collection, content, options)),
    remove: (path, options) => run('write', () => store.remove(path, options)),
    ...(store.stage === undefined ? {} : { stage: (body, options) => run('write', () => store.stage!(body, options)) }),
  }
}
