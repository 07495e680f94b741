import { afterAll, expect, vi } from 'vitest'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { ServiceView } from '../../src/openapi/inputs.ts'
import type { RecordedAnswer } from './check-answers.ts'

/** What the services of a test file have answered; each answer once. Files of one process share the mocks below, and this. */
const recorder = vi.hoisted(() => {
  const create = () => ({
    views: new WeakMap<object, unknown>(),
    numbers: new Map<unknown, number>(),
    answers: new Map<string, unknown>(),
  })
  const shared = globalThis as { answerRecorder?: ReturnType<typeof create> }
  shared.answerRecorder ??= create()
  return shared.answerRecorder
})

/** JSON up to this size is held against its schema. */
const MOST = 64 * 1024

function textOf({ body }: Reply): string | undefined {
  if (typeof body === 'string') return body.length <= MOST ? body : undefined
  return body instanceof Uint8Array && body.length <= MOST ? Buffer.from(body).toString() : undefined
}

function record(exchange: Exchange & { readonly route?: object }, reply: Reply): void {
  const view = exchange.route && (recorder.views.get(exchange.route) as ServiceView | undefined)
  if (view === undefined || reply.status === 0) return
  const fields = [...reply.headers, ...exchange.pending]
  const fieldOf = (name: string): string | undefined => {
    const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
    return at < 0 ? undefined : fields[at + 1]
  }
  const contentType = fieldOf('content-type')
  const isJson = /^[\w./+-]*json\b/.test(contentType ?? '') && reply.status !== 206
  const answer: RecordedAnswer = {
    view,
    route: exchange.route!,
    path: exchange.path,
    method: exchange.method,
    accept: exchange.field('accept'),
    status: reply.status,
    names: fields.filter((_, index) => index % 2 === 0),
    contentType,
    length: fieldOf('content-length'),
    text: isJson && exchange.method !== 'HEAD' && fieldOf('content-encoding') === undefined ? textOf(reply) : undefined,
  }
  const { view: _, route: __, ...rest } = answer
  const number = recorder.numbers.get(exchange.route) ?? recorder.numbers.size
  recorder.numbers.set(exchange.route, number)
  recorder.answers.set(`${number} ${JSON.stringify({ ...rest, path: '' })}`, answer)
}

vi.mock('../../src/openapi/inputs.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/openapi/inputs.ts')>()
  const rememberView: typeof original.rememberView = (service, view) => {
    for (const { route } of view.routes) recorder.views.set(route, view)
    original.rememberView(service, view)
  }
  return { ...original, rememberView }
})

vi.mock('../../src/core/write-reply.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/core/write-reply.ts')>()
  const writeReply: typeof original.writeReply = (exchange, reply, onLateFailure) => {
    record(exchange, reply)
    return original.writeReply(exchange, reply, onLateFailure)
  }
  return { ...original, writeReply }
})

// Every answer is held against the description of the service that gave it (issue 21).
afterAll(async () => {
  const file = expect.getState().testPath!
  const { checkAnswers, keepRecord } = await import('./check-answers.ts')
  const { faults, described, seen } = checkAnswers([...recorder.answers.values()] as readonly RecordedAnswer[])
  recorder.answers.clear()
  recorder.numbers.clear()
  keepRecord(file, { described, seen })
  const places = 'src/openapi/successes.ts and responses.ts say which responses there are, with which fields'
  expect(faults, `What was answered and the description of the service differ: ${places}.`).toEqual([])
})
