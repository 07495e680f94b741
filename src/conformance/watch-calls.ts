import { isPromise } from '../core/maybe-promise.ts'
import type { ResourceStore } from '../stores/types.ts'

/** Knows which calls to the stores of a case have not been answered yet. */
export interface CallWatch {
  /** The same store, with calls that are noted until they are settled. */
  watch(store: ResourceStore): ResourceStore
  /** The calls that are open, each as it would be written. */
  readonly open: ReadonlySet<string>
}

const METHODS = ['read', 'write', 'create', 'remove', 'list', 'stage'] as const

export function createCallWatch(): CallWatch {
  const open = new Set<string>()
  let count = 0

  function note(result: PromiseLike<unknown>, call: string): Promise<unknown> {
    // Asked for its result once only: a query of some libraries runs at every `then`.
    const promise = Promise.resolve(result)
    open.add(call)
    const settle = (): void => void open.delete(call)
    promise.then(settle, settle)
    return promise
  }

  function watch(store: ResourceStore): ResourceStore {
    const calls: Record<string, unknown> = { supports: store.supports }
    for (const name of METHODS) {
      if (store[name] === undefined) continue
      calls[name] = (...values: unknown[]) => {
        const method = store[name] as (...values: unknown[]) => unknown
        const result = method.apply(store, values)
        return isPromise(result) ? note(result, `${describe(name, values[0])}, call ${++count} of the case`) : result
      }
    }
    return calls as unknown as ResourceStore
  }

  return { watch, open }
}

function describe(name: string, subject: unknown): string {
  return typeof subject === 'string' ? `${name}(${JSON.stringify(subject)})` : `${name}()`
}
