import { type Channel, channel } from 'node:diagnostics_channel'
import { isHttpError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { LogEntry } from './operator-log.ts'

/**
 * One event a request, on the channel `http-resource-service:request`, when the response has been decided. Its texts are safe
 * to log: characters that are not plainly visible are escaped.
 */
export interface RequestEvent {
  /** Over HTTP/2 any text that a client has sent: no label of a metric as it is. */
  readonly method: string
  /** Mount and path; never the query, which may hold secrets. */
  readonly target: string
  /**
   * The pattern of the resource below the mount, as in the definition: `/tasks/{id}`. `undefined` where no definition is for
   * the path, in a service without definitions, and for standalone middleware.
   */
  readonly route: string | undefined
  /** The status of the response. */
  readonly status: number
  /** The steps that were taken, in order, each with what it found: `evaluateConditions: If-Match failed`. */
  readonly steps: readonly string[]
  /** The last of them: why the response is what it is. It may have text of the client: no label of a metric. */
  readonly reason: string
  /** Milliseconds from the arrival of the request to the decision. */
  readonly duration: number
  /** The request, and what has been found out about it. */
  readonly exchange: Exchange
}

/** One event a failure, on the channel `http-resource-service:failure`. */
export interface FailureEvent {
  /** What was thrown; `undefined` for an `entry` without one. */
  readonly error: unknown
  /**
   * `request`: answered with 500. `late`: the head had left, the connection was broken off. `committed`: `afterCommit`
   * failed, and the response is that of the change. `background`: no request.
   * `state`: what requests depend on has stopped working, or works again, as `entry` says.
   */
  readonly stage: 'request' | 'late' | 'committed' | 'background' | 'state'
  /** The request, where there is one. */
  readonly exchange?: Exchange
  /** As for a request; also of accepted work. */
  readonly route?: string | undefined
  /** The report of the operational log; only for `state`. */
  readonly entry?: LogEntry
}

/** Whether anything listens is asked before an event is made. */
export const requests: Channel = channel('http-resource-service:request')
const failures = channel('http-resource-service:failure')
const arrivals = new WeakMap<Exchange, number>()

/** Starts the trace of a request, which somebody listens to. */
export function startTrace(exchange: Exchange): void {
  exchange.trace = []
  arrivals.set(exchange, performance.now())
}

/** Adds what a step found to the trace. */
export function note(exchange: Exchange, text: string): void {
  const { trace } = exchange
  if (trace === undefined) return
  const step = trace.pop()
  trace.push(step === undefined ? text : step.includes(': ') ? `${step}; ${text}` : `${step}: ${text}`)
}

/** Refuses a request, with the reason in its trace. */
export function refuse(exchange: Exchange, reason: string, error: Error): never {
  note(exchange, reason)
  throw error
}

/** Adds why a request failed: what the client learns about it, or an unexpected error as it is. */
export function noteError(exchange: Exchange, error: unknown): void {
  if (exchange.trace === undefined) return
  try {
    for (const text of describeError(error)) note(exchange, text)
  } catch {
    note(exchange, 'an error that has no text') // an object without a prototype, for example
  }
}

function describeError(error: unknown): readonly string[] {
  if (!isHttpError(error)) return [String(error)]
  // The detail of an error with one fault may be that of the fault.
  const others = (error.errors ?? []).filter((fault) => fault.detail !== error.detail)
  const faults = others.map((fault) => {
    const place = 'parameter' in fault ? fault.parameter : fault.pointer || 'content'
    return `${place} ${fault.detail}`
  })
  return error.detail === undefined ? faults : [String(error.detail), ...faults]
}

/** Publishes the trace of a request. */
export function publishTrace(exchange: Exchange, status: number): void {
  const { trace } = exchange
  if (trace === undefined) return
  const steps = trace.map(formatLogText)
  const event: RequestEvent = {
    method: formatLogText(exchange.method),
    target: formatLogText(exchange.mount + exchange.path),
    route: exchange.pattern,
    status,
    steps,
    reason: steps[steps.length - 1] ?? '',
    duration: performance.now() - (arrivals.get(exchange) ?? Number.NaN),
    exchange,
  }
  requests.publish(event)
}

export function publishFailure(event: FailureEvent): void {
  if (!failures.hasSubscribers) return
  const route = event.route ?? event.exchange?.pattern
  failures.publish(route === undefined ? event : { ...event, route })
}

const STREAMS = { error: 'stderr', log: 'stdout' } as const
/** Lines that have not been written yet. They share one listener: Node warns of more than ten. */
const unwritten = { error: 0, log: 0 }

function ignore(): void {}

/**
 * Writes to the console. It never throws, and a console that has been closed (EPIPE) does not end the process: Node emits that
 * as an `error` event of the stream, for a write after the first one without a listener of its own.
 */
export function writeToConsole(method: keyof typeof STREAMS, text: string): void {
  try {
    const stream = process[STREAMS[method]]
    const end = (): void => {
      if (--unwritten[method] === 0) stream.off('error', ignore)
    }
    if (++unwritten[method] === 1) stream.on('error', ignore)
    try {
      console[method](text)
    } finally {
      // The event comes after the callback.
      stream.write('', () => setImmediate(end))
    }
  } catch {
    // A console that the program has replaced.
  }
}

/**
 * Controls (C0, DEL, C1), format characters such as those that change the direction of text, line and paragraph separators,
 * and lone surrogates: a client's text must neither forge a line of a log nor command the terminal that shows it.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Text for one line of a log, with everything that is not plainly visible written as `\u{9b}`. */
export function formatLogText(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
