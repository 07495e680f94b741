/** What the code that answers for a failure looks at. */
const NAMES = ['name', 'message', 'code', 'status', 'cause'] as const

/**
 * What a hook or a store has thrown, as it is; an error in its place where it cannot be looked at: a proxy that throws, or
 * an error with a getter that does. Each look at it would be one more failure, in the code that answers for the first one.
 */
export function readThrown(thrown: unknown): unknown {
  if ((typeof thrown !== 'object' && typeof thrown !== 'function') || thrown === null) return thrown
  try {
    for (const name of NAMES) void (thrown as Readonly<Record<string, unknown>>)[name]
    Object.getPrototypeOf(thrown)
    return thrown
  } catch {
    return new TypeError('What was thrown cannot be read.', { cause: thrown })
  }
}

/**
 * The same for a host: an error in the place of a primitive value. Express lets a request go on, past the guard that failed, where
 * `next` gets nothing, `'route'` or `'router'`.
 */
export function toHostError(error: unknown): unknown {
  const isObject = (typeof error === 'object' && error !== null) || typeof error === 'function'
  return isObject ? error : new Error(`Thrown: ${String(error)}`, { cause: error })
}
