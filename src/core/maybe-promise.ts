/** A value, or a promise of one. Only promises are awaited: a synchronous store keeps the whole request in one turn. */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/**
 * Whether a value must be awaited. What a function of the user gives may be any object with a `then`, which need not return a
 * promise, and may settle twice: `Promise.resolve` makes a promise of it, and leaves a promise as it is.
 */
export function isPromise<Value>(value: MaybePromise<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && typeof (value as PromiseLike<Value>).then === 'function'
}

/**
 * `next(value)`, now or when the promise is fulfilled.
 * Not called "then": a module that exports that name is taken for a promise where it is imported dynamically.
 */
export function andThen<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value)
}

/** `work()` or, where that throws or its promise is rejected, `recover(error)`. */
export function orElse<Value>(
  work: () => MaybePromise<Value>,
  recover: (error: unknown) => MaybePromise<Value>,
): MaybePromise<Value> {
  try {
    const value = work()
    return isPromise(value) ? Promise.resolve(value).then(undefined, recover) : value
  } catch (error) {
    return recover(error)
  }
}

/** A value that is needed at once, as it is. Where it is a promise all the same, its rejection is passed over. */
export function atOnce<Value>(value: Value): Value {
  if (isPromise(value)) Promise.resolve(value).then(undefined, () => undefined)
  return value
}
