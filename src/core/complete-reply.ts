import { isToken } from '../protocol/field-value.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { emptyReply, encodeText, type Reply, type ReplyBody } from './reply.ts'

/**
 * Completes a reply that a function of the user has made: text is sent as UTF-8, and content with its length in bytes,
 * whatever Content-Length the function has given.
 * @throws TypeError for a body that cannot be sent
 */
export function completeReply({ status, headers, body }: Reply): Reply {
  const content = typeof body === 'string' ? encodeText(body) : body
  const isUtf8Only = content !== body
  const fields: string[] = []
  let isTyped = false
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    const key = name.toLowerCase()
    if (key === 'content-length') continue
    if (key === 'content-type') isTyped = true
    fields.push(name, isUtf8Only && key === 'content-type' ? withUtf8(headers[i + 1]!) : headers[i + 1]!)
  }
  if (content === undefined || content === '') return emptyReply(status, fields)
  if (typeof body === 'string' && !isTyped) fields.push('Content-Type', 'text/plain; charset=utf-8')
  return { status, headers: [...fields, 'Content-Length', String(sizeOf(content))], body: content }
}

function sizeOf(content: ReplyBody): number {
  if (typeof content === 'string' || content instanceof Uint8Array) return content.length
  if (Number.isSafeInteger(content.size) && typeof content.open === 'function') return content.size
  throw new TypeError('formatError: the body of a reply must be a string, a Uint8Array or a ContentSource.')
}

/** The type of text that is sent as UTF-8. Only text has a charset by default; JSON has none (RFC 8259 §11). */
function withUtf8(field: string): string {
  const type = parseMediaType(field)
  if (type === undefined) return field
  const { essence, parameters } = type
  const charset = parameters.get('charset')
  if (charset === undefined ? !essence.startsWith('text/') : /^utf-?8$/i.test(charset)) return field
  const others = [...parameters].filter(([name]) => name !== 'charset')
  const kept = others.map(([name, value]) => `; ${name}=${isToken(value) ? value : JSON.stringify(value)}`)
  return `${essence}${kept.join('')}; charset=utf-8`
}
