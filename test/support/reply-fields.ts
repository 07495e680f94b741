import type { Reply } from '../../src/core/reply.ts'

/** The value of a field in a reply, or `undefined`. Names are compared case-insensitively. */
export function fieldOf(reply: Reply, name: string): string | undefined {
  const key = name.toLowerCase()
  for (let i = 0; i < reply.headers.length; i += 2)
    if (reply.headers[i]!.toLowerCase() === key) return reply.headers[i + 1]
  return undefined
}
