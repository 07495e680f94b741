/** Waiting for what may never end. */

/** Waits until work has ended, or a time in milliseconds is over. @returns whether it has ended */
export async function waitAtMost(time: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const isLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, time, false)
  })
  try {
    return await Promise.race([work.then(() => true), isLate])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Milliseconds for which further callers join a call that has not ended. It may never end, where its connection was lost
 * silently: callers that come later must not wait with it.
 */
const PATIENCE = 5000

/** Lets callers of the same time share one call. The first caller after its end makes a new one. */
export function shareCall<Result>(call: () => Promise<Result>): () => Promise<Result> {
  let current: { readonly since: number; readonly result: Promise<Result> } | undefined
  return () => {
    if (current !== undefined && performance.now() - current.since < PATIENCE) return current.result
    const result = call().finally(() => {
      if (current === own) current = undefined
    })
    const own = { since: performance.now(), result }
    current = own
    return result
  }
}
