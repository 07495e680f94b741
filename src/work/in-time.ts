/** Milliseconds that a step of accepted work may take in the store: more than any that is answered at all. */
export const PATIENCE = 600_000

/**
 * Waits for a step of the store. It may never end, where its connection was lost silently: the work would keep its place
 * for good.
 * @throws Error where it has not ended in time; what it does later counts all the same
 */
export async function inTime<Result>(step: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, PATIENCE, new Error('The store has not answered for ten minutes.')).unref()
  })
  try {
    return await Promise.race([step, late])
  } finally {
    clearTimeout(timer)
  }
}
