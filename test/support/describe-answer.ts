import type { Answer } from './answer.ts'

/** What may differ: time, the connection, versions (which are never reused). */
const VARYING = new Set(['date', 'connection', 'keep-alive', 'last-modified', 'etag', 'transfer-encoding'])

/** An answer as it is on every host. */
export interface DescribedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Describes an answer so that those of different hosts are equal. @param prefix that the host is asked below; left out */
export function describeAnswer({ status, headers, body }: Answer, prefix: string): DescribedAnswer {
  const names = Object.keys(headers).sort()
  const boundary = /boundary=(\S+)/.exec(String(headers['content-type']))?.[1]
  const hide = (text: string): string => (boundary === undefined ? text : text.replaceAll(boundary, 'BOUNDARY'))
  const described = {
    status,
    headers: Object.fromEntries(
      names
        .filter((name) => name !== 'date' && !/^(?:connection|keep-alive)$/.test(name))
        .map((name) => [name, VARYING.has(name) ? 'varies' : hide(String(headers[name]))]),
    ),
    body:
      body.length > 10_000 ? `${body.length} bytes` : hide(body.toString()).replace(/after=[\w-]+/g, 'after=CURSOR'),
  }
  return prefix === '' ? described : JSON.parse(JSON.stringify(described).replaceAll(prefix, ''))
}
