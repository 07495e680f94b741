import { writeToConsole } from './console-line.ts'
import { publishFailure } from './diagnostics.ts'
import { catchRejection } from './maybe-promise.ts'

/**
 * A change in what the requests depend on, for the operator. Each is reported once: when it stops working, and when it works
 * again.
 */
export interface LogEntry {
  /** `'error'` when it stops working; `'info'` when it works again, and for progress. */
  readonly level: 'error' | 'info'
  /**
   * `'store'`: the database. `'keys'`: the keys that tokens are verified with. `'transport'`: cleartext requests are refused.
   * `'queue'`: accepted work is not started. `'index'`: items that exist already are being indexed for `query` or `scope`.
   */
  readonly part: 'store' | 'keys' | 'transport' | 'queue' | 'index'
  readonly state: 'down' | 'up'
  /** One line of plain text, safe for a terminal. */
  readonly message: string
  /** The failure; left out when there is none. */
  readonly error?: unknown
}

/** Receives the changes. Whatever it does, requests are answered. */
export type Log = (entry: LogEntry) => unknown

function writeLine({ message }: LogEntry): void {
  writeToConsole('error', `http-resource-service: ${message}`)
}

function ignore(): void {}

/** The log of an option: the console by default, nothing for `false`. It never throws. */
export function createLog(log: Log | boolean | undefined): Log {
  if (log === false) return ignore
  const write = typeof log === 'function' ? log : writeLine
  return (entry) => {
    try {
      catchRejection(write(entry), reportFailure)
    } catch (error) {
      reportFailure(error)
    }
  }
}

function reportFailure(error: unknown): void {
  publishFailure({ error, stage: 'background' })
}
