import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import { isSafeMethod } from '../protocol/request-line.ts'
import { RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Step } from './handler.ts'
import { isPromise, type MaybePromise } from './maybe-promise.ts'
import { streamOf } from './place.ts'
import type { Reply } from './reply.ts'

/**
 * What is known of a connection for as long as it lives: one object, which stands on the socket or the session under one
 * symbol. As properties of their own these would make sockets differ, and a small PUT 1 % slower.
 */
export interface Connection {
  /** Whether the client is watched for reading its answers. */
  isWatched: boolean
  /** The answer that was decided last, until it has left: those of the host may take their time. */
  answer: ServerResponse | undefined
  /** Milliseconds without progress after which a client that does not read that answer is given up. */
  idleTimeout: number
  /** The requests that stand behind another. */
  pipeline: Pipeline | undefined
  /** The request that was taken last, if it was not decided at once. */
  inFlight: InFlight | undefined
}

const CONNECTION = Symbol('connection')

/** The object that lives as long as the connection of a request: its socket or, on HTTP/2, its session. */
export function carrierOf(exchange: Exchange): object {
  return (exchange.isHttp2 ? streamOf(exchange).session : undefined) ?? exchange.req.socket
}

/** What is known of a connection. @param carrier its socket or session */
export function connectionOf(carrier: object): Connection {
  const known = (carrier as { [CONNECTION]?: Connection })[CONNECTION]
  if (known !== undefined) return known
  const connection: Connection = {
    isWatched: false,
    answer: undefined,
    idleTimeout: Number.POSITIVE_INFINITY,
    pipeline: undefined,
    inFlight: undefined,
  }
  ;(carrier as { [CONNECTION]?: Connection })[CONNECTION] = connection
  return connection
}

/** Whether Node itself writes the response, to a socket of its own. Other runtimes may call nothing after a write. */
export function isOnSocket({ req, res }: Exchange): boolean {
  // The response of a pipelined request has no socket before its turn.
  return (res.socket ?? req.socket) instanceof Socket
}

/** Whether an answer before was the last. What follows must not be processed: it may be sent again (RFC 9112 §9.6). */
export function isBehindLast({ req, res }: Exchange): boolean {
  const { socket } = req
  if (res.socket !== null) return socket.writableEnded
  const { answer } = connectionOf(socket)
  return answer !== undefined && answer !== res && !answer.shouldKeepAlive
}

/** Bytes of answers that may wait on a connection before its next request is taken. */
const MOST_BYTES = 256 * 1024
/** Requests of a connection that may be taken and not answered. */
const MOST_ANSWERS = 16
/** Requests of a connection that may wait before it is not read any more; then it is not seen either that it has closed. */
const MOST_WAITING = 512

interface Waiter {
  readonly res: ServerResponse
  readonly resume: () => void
  readonly abort: (error: Error) => void
  /** Whether it is taken only when all answers before its own have left. */
  readonly waitsForTurn: boolean
}

/** The requests of one connection that stand behind another (RFC 9112 §9.3.2). */
export interface Pipeline {
  readonly socket: Socket
  /** Answers of requests that have been taken and are not the next to be sent, in order. */
  readonly taken: ServerResponse[]
  /** Requests that have not been taken, in order. */
  readonly waiting: Waiter[]
  isAdmitting: boolean
}

/**
 * Holds a pipelined request back while too many answers wait before it. Node takes every request that it has read, which
 * are 2,000 small ones in 64 KiB, and keeps all answers to a client that does not read.
 * @returns `undefined` when the request may be taken at once; rejects when the client leaves
 */
export function waitInPipeline(exchange: Exchange): undefined | Promise<void> {
  const { req, res } = exchange
  // The next answer to be sent, as almost always: all before it have left.
  if (res.socket !== null) return undefined
  const connection = connectionOf(req.socket)
  const pipeline = (connection.pipeline ??= createPipeline(req.socket))
  if (pipeline.taken.includes(res)) return undefined // by a middleware before
  // It is the next to be sent: those before it have left.
  res.once('socket', () => {
    if (pipeline.taken[0] === res) pipeline.taken.shift()
    admitLater(pipeline)
  })
  // Where both have to wait, Node sends the head of the answer first and then 100 Continue, as if that were content.
  const waitsForTurn = exchange.field('expect') !== undefined
  if (!waitsForTurn && pipeline.waiting.length === 0 && hasRoom(pipeline)) {
    pipeline.taken.push(res)
    return undefined
  }
  return new Promise((resume, abort) => {
    pipeline.waiting.push({ res, resume, abort, waitsForTurn })
    pauseIfFull(pipeline)
    admitLater(pipeline)
  })
}

function createPipeline(socket: Socket): Pipeline {
  const pipeline: Pipeline = { socket, taken: [], waiting: [], isAdmitting: false }
  // A body that is read resumes the connection; what is read from it then are more requests.
  socket.on('resume', () => pauseIfFull(pipeline))
  socket.once('close', () => {
    for (const { abort } of pipeline.waiting.splice(0)) abort(new RequestAborted())
  })
  return pipeline
}

function hasRoom({ socket, taken }: Pipeline): boolean {
  if (taken.length + 1 >= MOST_ANSWERS) return false
  // What has not got the connection yet counts its own bytes only.
  return taken.reduce((sum, res) => sum + res.writableLength, socket.writableLength) < MOST_BYTES
}

/** One request a turn: how much its answer adds is seen only when it is there. */
function admitLater(pipeline: Pipeline): void {
  const { waiting, taken, socket } = pipeline
  if (pipeline.isAdmitting || waiting.length === 0) return
  pipeline.isAdmitting = true
  setImmediate(() => {
    pipeline.isAdmitting = false
    const [first] = waiting
    if (first === undefined) return
    const isNext = first.res.socket !== null
    if (!isNext && (first.waitsForTurn || !hasRoom(pipeline))) return
    if (!isNext) taken.push(first.res)
    waiting.shift()
    first.resume()
    if (waiting.length === MOST_WAITING - 1) socket.resume()
    admitLater(pipeline)
  })
}

function pauseIfFull({ socket, waiting }: Pipeline): void {
  if (waiting.length >= MOST_WAITING) socket.pause()
}

/** The request of a connection that was taken last, with those before it that were not decided then. */
export class InFlight {
  /** Whether safe requests may go beside it: it is safe, and waits for nothing that is not. */
  readonly isSafe: boolean
  before: InFlight | undefined
  /** `undefined` once it is there. */
  decision: PromiseLike<Reply | undefined> | undefined

  constructor(isSafe: boolean, before: InFlight | undefined, decision: PromiseLike<Reply | undefined>) {
    this.isSafe = isSafe
    this.before = before
    this.decision = decision
  }

  /** Drops the references to decided requests: a connection may stay open for days. */
  decided(): void {
    this.decision = undefined
    this.before = undecided(this.before)
  }
}

/**
 * Takes requests of one connection in their order, as far as they are not all safe (RFC 9112 §9.3.2). Node hands over a
 * pipelined request while the one before it is still being processed: without this, a GET sent after a PUT on the same
 * connection would not see what was put, and the second of two PUTs might lose.
 */
export function decideInOrder<E extends Exchange>(exchange: E, decide: Step<E>): MaybePromise<Reply | undefined> {
  if (exchange.isHttp2) return decide(exchange) // streams have no order
  const connection = connectionOf(exchange.req.socket)
  const before = undecided(connection.inFlight)
  const { method } = exchange
  const waits = before !== undefined && !(before.isSafe && isSafeMethod(method))
  const decision = waits ? decideAfter(before, exchange, decide) : decide(exchange)
  if (!isPromise(decision)) return decision
  exchange.inFlight = connection.inFlight = new InFlight(!waits && isSafeMethod(method), before, decision)
  return decision
}

/** The last request that is still in flight, if any. */
function undecided(request: InFlight | undefined): InFlight | undefined {
  let last = request
  while (last !== undefined && last.decision === undefined) last = last.before
  return last
}

async function decideAfter<E extends Exchange>(
  request: InFlight,
  exchange: E,
  decide: Step<E>,
): Promise<Reply | undefined> {
  for (let last = undecided(request); last !== undefined; last = undecided(request)) {
    try {
      await last.decision
    } catch {
      // Its own request answers for it.
    }
    last.decided()
  }
  // The answer before is written first, through adapters of hosts as well: it may be the last.
  await immediate()
  if (isBehindLast(exchange)) throw new RequestAborted()
  return decide(exchange)
}
