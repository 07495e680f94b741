import { expect } from 'vitest'
import { openRawClient, type RawResponse, valuesOf } from '../wire/raw-client.ts'
import { lintResponse } from './lint-response.ts'

export interface RawRequest {
  readonly method?: string
  readonly target: string
  /** Field lines as they are sent; Host comes by itself unless one of them is Host. */
  readonly fields?: readonly string[]
  readonly body?: string | Uint8Array
}

/** A response with what tests look at most. */
export interface RawAnswer extends RawResponse {
  /** The value of a field that may not be repeated; `undefined` when it is absent. */
  field(name: string): string | undefined
  readonly text: string
}

/** The bytes of a request. Content-Length comes by itself with content. */
export function formatRequest({ method = 'GET', target, fields = [], body }: RawRequest): Buffer {
  const has = (name: string): boolean => fields.some((line) => line.toLowerCase().startsWith(`${name}:`))
  const lines = [`${method} ${target} HTTP/1.1`, ...(has('host') ? [] : ['Host: demo.test']), ...fields]
  const content = body === undefined ? Buffer.alloc(0) : Buffer.from(body)
  const isSized = body === undefined || has('content-length') || has('transfer-encoding')
  if (!isSized) lines.push(`Content-Length: ${content.length}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), content])
}

/** Gives a response its short accessors, once it has passed the linter. */
export function checkAnswer(method: string, response: RawResponse): RawAnswer {
  expect(lintResponse(method, response)).toEqual([])
  const field = (name: string): string | undefined => valuesOf(response, name.toLowerCase())[0]
  return { ...response, field, text: response.body.toString() }
}

/**
 * Sends one request over a connection of its own and reads the answer, which must pass the linter; then asks for `/` on
 * the same connection, unless the answer closes it: whatever was refused, the next request is understood (row K4).
 */
export async function ask(port: number, request: RawRequest): Promise<RawAnswer> {
  const { method = 'GET' } = request
  const client = await openRawClient(port)
  try {
    client.send(formatRequest(request))
    const answer = checkAnswer(method, await client.read(method))
    if (answer.field('connection') !== 'close') {
      client.send(formatRequest({ method: 'OPTIONS', target: '*' }))
      expect((await client.read('OPTIONS')).status).toBe(204)
    } else expect((await client.readToEnd()).toString()).toBe('')
    return answer
  } finally {
    client.socket.destroy()
  }
}
