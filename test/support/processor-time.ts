/**
 * Starts to measure processor time, of all threads: what else the machine does meanwhile does not count.
 * @returns a function that gives the milliseconds since
 */
export function startProcessorClock(): () => number {
  const start = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1000
  }
}
