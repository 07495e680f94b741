import { isJsonObject, type JsonValue } from '../core/json.ts'
import { type ClientContext, describeDocument, getJson, type RequestOptions } from './read.ts'
import { type Failure, type Operation, READING, type ResourceDocument, refuse, type Success } from './results.ts'
import { pause, readRetryAfter } from './retry.ts'

export type WaitResult<Value> =
  | Success<200, { readonly document: ResourceDocument<Value> }>
  | Failure<(typeof READING)[number]>

/** Milliseconds between two looks at work of which the server does not say when to look again. */
const USUAL_PAUSE = 1000
/** However soon the server wants to be asked again. */
const SHORTEST_PAUSE = 100

/** Reads the monitor of accepted work until the work has ended. */
export async function waitForEnd<Value>(
  context: ClientContext,
  { url, retryAfter }: Operation<Value>,
  options: RequestOptions | undefined,
): Promise<WaitResult<Value>> {
  const { signal } = options ?? {}
  if (retryAfter !== undefined) await pause(retryAfter, signal)
  while (true) {
    const answer = await getJson(context, url, options)
    if (answer.status !== 200) return refuse(answer, READING)
    const document = describeDocument<JsonValue, string>(answer, url)
    const state = isJsonObject(document.value) ? document.value['state'] : undefined
    if (state !== 'pending' && state !== 'running') {
      return { ok: true, status: 200, document: document as ResourceDocument<Value> }
    }
    const wanted = readRetryAfter(answer) ?? USUAL_PAUSE
    await pause(Math.max(wanted, SHORTEST_PAUSE), signal)
  }
}
