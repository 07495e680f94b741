import { UsageError } from './results.ts'

/** The class of a value, also where it is that of another window or of a package; `Object` for one of a program. */
function classOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

export function isForm(content: unknown): content is FormData {
  return content instanceof FormData || classOf(content) === 'FormData'
}

export function isBlob(content: unknown): content is Blob {
  return content instanceof Blob || ['Blob', 'File'].includes(classOf(content))
}

/** @throws TypeError for what is neither bytes nor text: a Blob of a promise would have the text `[object Promise]` */
export function toBlob(content: unknown): Blob {
  if (isBlob(content)) return content
  if (typeof content === 'string' || ArrayBuffer.isView(content) || classOf(content) === 'ArrayBuffer') {
    return new Blob([content as string])
  }
  throw new UsageError(`Content is a Blob, bytes or text, not a value of the class ${classOf(content)}.`)
}

export function typeOf(blob: Blob): string {
  return blob.type || 'application/octet-stream'
}

/** Objects of these classes have all they hold in their properties; JSON makes `{}` of a Map or a form. */
const JSON_CLASSES = ['Object', 'Array', 'String', 'Number', 'Boolean']

/** @throws TypeError for a value of which JSON would lose something */
export function formatJson(value: unknown): string {
  const refuse = (member: unknown): never => {
    throw new UsageError(`JSON cannot hold a value of the class ${classOf(member)}.`)
  }
  const text: string | undefined = JSON.stringify(value, (_, member) =>
    typeof member !== 'object' || member === null || JSON_CLASSES.includes(classOf(member)) ? member : refuse(member),
  )
  return text ?? refuse(value)
}
