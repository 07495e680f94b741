import { inspect } from 'node:util'
import { formatLogText, writeToConsole } from './console-line.ts'
import { type FailureEvent, publishFailure } from './diagnostics.ts'
import type { Exchange } from './exchange.ts'
import { catchRejection } from './maybe-promise.ts'

/** The failure of a request, seen by the operator. */
export type ErrorHook = (error: unknown, exchange: Exchange) => void

/** Reports a failure to the operator. It never throws. */
export type ReportFailure = (error: unknown, exchange: Exchange, stage: FailureEvent['stage']) => void

/** @param onError receives each failure. Default: the console */
export function createFailureReport(onError: ErrorHook = logError): ReportFailure {
  return (error, exchange, stage) => {
    publishFailure({ error, stage, exchange })
    try {
      catchRejection(onError(error, exchange), (failure) => logError(failure, exchange))
    } catch (failure) {
      // A hook that fails must not cause another failure: the request still has to be answered.
      logError(failure, exchange)
    }
  }
}

function logError(error: unknown, { method, mount, path }: Exchange): void {
  logFailure(`${method} ${formatLogText(mount + path)}`, error)
}

/** Writes a failure to the console. @param what failed */
export function logFailure(what: string, error: unknown): void {
  let failure: string
  try {
    failure = inspect(error)
  } catch {
    failure = 'The error cannot be shown.' // a getter of it throws
  }
  const lines = `http-resource-service: ${what} failed: ${failure}`.split('\n')
  writeToConsole('error', lines.map(formatLogText).join('\n'))
}
