/** What a store stamps each state with: a version that never comes back, and a time that never goes back. */
import { randomBytes } from 'node:crypto'
import type { SqliteStatements } from './sqlite/statements.ts'

/**
 * Makes versions. Random per process and counted within it: none comes back, not after a restart either, nor when a
 * backup of the database is restored. 36 random bits: for a version to come back, two processes would have to draw the
 * same ones and write one path at the same count. Short, because every answer carries it, and every state keeps it: an
 * entity tag of at most 12 characters is one piece of text for V8. A longer one is three, which the check of the field
 * has to join first, for 1,200 of the 136,000 instructions of a small PUT.
 */
export function createVersions(): () => string {
  // Drawn at the first use: Workers may not draw random bytes while a module is loaded.
  let incarnation: string | undefined
  let count = 0
  return () => {
    incarnation ??= randomBytes(6).toString('base64url').slice(0, 6)
    return incarnation + (++count).toString(36)
  }
}

/** The time that a store gives to its states: the local clock, but never back. */
export interface StoreClock {
  /** Milliseconds since the epoch, never less than before. */
  now(): number
  /** Takes over a time that another process has given to a state. */
  raise(time: number): void
}

/**
 * A clock that was set back, or that is behind the clock of another process, would give a state the date of an earlier
 * one, and a date that names two states proves nothing (RFC 9110 §8.8.2.2). Until the local clock has caught up, time goes
 * on from where it was, in whole seconds: what is kept for a time still expires.
 * @param now the local clock, in milliseconds since the epoch
 */
export function createStoreClock(now: () => number): StoreClock {
  let latest = Number.NEGATIVE_INFINITY
  /** When `latest` was reached, on a monotonic clock; `undefined` while the local clock leads. */
  let since: number | undefined

  return {
    now() {
      const local = now()
      if (local >= latest) {
        since = undefined
        latest = local
        return local
      }
      const moment = performance.now()
      since ??= moment
      const seconds = Math.floor((moment - since) / 1000)
      since += seconds * 1000
      latest += seconds * 1000
      return latest
    },

    raise(time) {
      if (time <= latest) return
      latest = time
      since = undefined
    },
  }
}

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
