/** Waits until work has ended, or a time in milliseconds is over. */
export async function waitAtMost(time: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const isOver = new Promise((resolve) => {
    timer = setTimeout(resolve, time)
  })
  try {
    await Promise.race([work, isOver])
  } finally {
    clearTimeout(timer)
  }
}
