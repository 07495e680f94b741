/** Runs a task when its turn has come. */
export type InTurn = <Result>(task: () => Promise<Result>) => Promise<Result>

/**
 * Runs a few tasks at a time; the others wait in the order in which they came.
 * @param most tasks at a time
 */
export function createInTurn(most: number): InTurn {
  const waiting = new Set<() => void>()
  let running = 0

  function passOn(): void {
    const [next] = waiting
    if (next === undefined) {
      running--
      return
    }
    waiting.delete(next)
    next()
  }

  return async (task) => {
    if (running < most) running++
    else await new Promise<void>((resolve) => waiting.add(resolve))
    try {
      return await task()
    } finally {
      passOn()
    }
  }
}
