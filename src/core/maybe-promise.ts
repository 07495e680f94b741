/** A value, or a promise of one. Only promises are awaited: a synchronous store keeps the whole request in one turn. */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/** Whether a value must be awaited. */
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
  return isPromise(value) ? value.then(next) : next(value)
}
