import { expect } from 'vitest'
import { openRawClient } from '../wire/raw-client.ts'
import type { Answer } from './answer.ts'
import { lintResponse } from './lint-response.ts'

export interface RawRequest {
  readonly method?: string
  readonly target: string
  /** Field lines as they are sent; Host comes by itself unless one of them is Host. */
  readonly fields?: readonly string[]
  readonly body?: string | Uint8Array
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

/** An answer that has passed the linter. */
export function checkAnswer(method: string, answer: Answer): Answer {
  expect(lintResponse(method, answer)).toEqual([])
  return answer
}

/**
 * Sends one request over a connection of its own and reads the answer, which must pass the linter; then asks for `/` on
 * the same connection, unless the answer closes it: whatever was refused, the next request is understood (row K4).
 */
export async function ask(port: number, request: RawRequest): Promise<Answer> {
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
