import { createStoreClock } from '../clock.ts'
import type { SqliteStatements } from './statements.ts'

/**
 * The clock of the processes that share a file: the local one, but never behind the latest second in which any of them
 * has written. A process whose clock is hours behind would otherwise date a new state like one that was removed, and
 * whose row another process has swept.
 */
export interface SqliteClock {
  /** The time as this process knows it, without a look at the file. */
  now(): number
  /** Within a transaction: the time by the file. */
  read(): number
  /** Within a transaction: the time by the file, for what is written now; no process writes an earlier one afterwards. */
  tick(): number
}

export function createSqliteClock(statements: SqliteStatements, now: () => number): SqliteClock {
  const clock = createStoreClock(now)

  /** The latest second of the file. The file keeps seconds: a date has no more, and one write a second is enough. */
  function readSecond(): number {
    const { second } = statements.readClock.get() as { second: number }
    clock.raise(second * 1000)
    return second
  }

  readSecond()
  return {
    now: clock.now,

    read() {
      readSecond()
      return clock.now()
    },

    tick() {
      const known = readSecond()
      const time = clock.now()
      const second = Math.floor(time / 1000)
      if (second > known) statements.setClock.run(second)
      return time
    },
  }
}
