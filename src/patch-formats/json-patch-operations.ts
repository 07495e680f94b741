import { HttpError } from '../core/errors.ts'
import { isDeeperThan, isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { parsePointer } from './json-pointer.ts'

/** What a JSON Patch may ask for; beyond any of it the answer is 413. */
export interface PatchLimits {
  /** Operations of one patch. Default 1000. */
  readonly maxOperations: number
  /** Characters of one pointer. Default 4096. */
  readonly maxPointerLength: number
  /** How deep arrays and objects of the patched document may be nested. Default 100, at most 1000. */
  readonly maxDepth: number
  /** Characters of JSON by which all `copy` operations together may make the document grow. Default 8 Mi. */
  readonly maxGrowth: number
  /** Members and array items that all `copy` operations together may add. Default 100,000. */
  readonly maxMembers: number
}

/** A JSON Pointer and what it says. */
export interface Pointer {
  readonly text: string
  readonly tokens: readonly string[]
}

export type OperationName = 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'

/** One operation, checked as far as that is possible without the document. */
export interface Operation {
  /** Its place in the patch. */
  readonly index: number
  readonly op: OperationName
  readonly path: Pointer
  /** Of `move` and `copy`. */
  readonly from: Pointer | undefined
  /** Of `add`, `replace` and `test`. */
  readonly value: JsonValue | undefined
}

/** A Map, because an object would also know an operation called "constructor". */
const NEEDS: ReadonlyMap<JsonValue | undefined, 'value' | 'from' | 'nothing'> = new Map([
  ['add', 'value'],
  ['replace', 'value'],
  ['test', 'value'],
  ['move', 'from'],
  ['copy', 'from'],
  ['remove', 'nothing'],
])

/**
 * Checks a JSON Patch document (RFC 6902 §3, §4) from beginning to end.
 * @throws HttpError 400 when it is malformed; 413 when it is over a limit
 */
export function parseOperations(document: JsonValue, limits: PatchLimits): readonly Operation[] {
  if (!Array.isArray(document)) {
    throw new HttpError(400, 'ERR_MALFORMED_PATCH', {
      detail: 'A JSON Patch is an array of operations.',
      errors: [{ pointer: '', detail: 'This is not an array.' }],
    })
  }
  if (document.length > limits.maxOperations) {
    throw new HttpError(413, 'ERR_TOO_LARGE', { detail: `The patch has more than ${limits.maxOperations} operations.` })
  }
  const operations: Operation[] = []
  for (let index = 0; index < document.length; index++) operations.push(parseOperation(document[index], index, limits))
  return operations
}

function parseOperation(given: JsonValue, index: number, limits: PatchLimits): Operation {
  if (!isJsonObject(given)) throw malformed(index, '', 'An operation is an object.')
  const op = readMember(given, 'op')
  const needs = NEEDS.get(op)
  if (needs === undefined) {
    throw malformed(index, '/op', 'There has to be one of add, remove, replace, move, copy and test.')
  }
  const path = readPointer(given, 'path', index, limits)
  const from = needs === 'from' ? readPointer(given, 'from', index, limits) : undefined
  const value = needs === 'value' ? readMember(given, 'value') : undefined
  if (needs === 'value') {
    if (value === undefined) throw malformed(index, '/value', 'This operation needs a value.', path.text)
    if (isDeeperThan(value, limits.maxDepth - path.tokens.length)) {
      throw tooLarge(index, `The document may be nested at most ${limits.maxDepth} levels deep.`, path.text)
    }
  }
  // RFC 6902 §4.4: nothing moves into itself.
  if (op === 'move' && path.text.startsWith(`${from!.text}/`)) {
    throw malformed(index, '/from', 'A value cannot be moved into itself.', path.text)
  }
  return { index, op: op as OperationName, path, from, value }
}

function readPointer(operation: JsonObject, name: 'path' | 'from', index: number, limits: PatchLimits): Pointer {
  const text = readMember(operation, name)
  if (typeof text !== 'string') throw malformed(index, `/${name}`, 'There has to be a JSON Pointer.')
  if (text.length > limits.maxPointerLength) {
    throw tooLarge(index, `A pointer may have at most ${limits.maxPointerLength} characters.`)
  }
  const tokens = parsePointer(text)
  if (tokens === undefined) throw malformed(index, `/${name}`, 'This is not a JSON Pointer (RFC 6901).', text)
  if (tokens.length > limits.maxDepth) {
    throw tooLarge(index, `A pointer may have at most ${limits.maxDepth} parts.`, text)
  }
  return { text, tokens }
}

function malformed(index: number, member: string, detail: string, path?: string): HttpError {
  return new HttpError(400, 'ERR_MALFORMED_PATCH', {
    detail: `Operation ${index} is malformed.`,
    ...describePlace(index, member, detail, path),
  })
}

function tooLarge(index: number, detail: string, path?: string): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail, ...describePlace(index, '', detail, path) })
}

/** 409 for an operation that does not fit the document. */
export function unfit(operation: Operation, member: 'path' | 'from', detail: string): HttpError {
  const { index } = operation
  return new HttpError(409, 'ERR_PATCH_CONFLICT', {
    detail: `Operation ${index} does not fit the current state.`,
    ...describePlace(index, `/${member}`, detail, operation[member]!.text),
  })
}

/** Where in the patch the fault is, and which place of the document it is about; nothing of the document itself. */
function describePlace(index: number, member: string, detail: string, path: string | undefined) {
  return {
    errors: [{ pointer: `/${index}${member}`, detail }],
    extensions: path === undefined ? { index } : { index, path },
  }
}
