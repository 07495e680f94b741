import { HttpError } from '../core/errors.ts'
import { equalJson, isDeeperThan, isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { numberThat, SIZE, withDefault } from '../core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import { Draft } from './draft.ts'
import { parsePointer } from './json-pointer.ts'
import type { PatchFormat } from './patch-format.ts'

/** What a JSON Patch may ask for; beyond any of it the answer is 413. */
interface PatchLimits {
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

export type JsonPatchOptions = Partial<PatchLimits>

const DEPTH = numberThat((value) => value >= 0 && value <= 1000, 'a number from 0 to 1000')

const OPTIONS = {
  maxOperations: withDefault(SIZE, 1000),
  maxPointerLength: withDefault(SIZE, 4096),
  maxDepth: withDefault(DEPTH, 100),
  maxGrowth: withDefault(SIZE, 8 * 1024 * 1024),
  maxMembers: withDefault(SIZE, 100_000),
} satisfies OptionTable<JsonPatchOptions>

/**
 * The patch format `application/json-patch+json` (RFC 6902).
 * @throws TypeError for an option that does not exist or makes no sense
 */
export function jsonPatch(options?: JsonPatchOptions): PatchFormat {
  const limits = completeOptions(
    resolveOptions<JsonPatchOptions, typeof OPTIONS>('jsonPatch', options, OPTIONS),
    OPTIONS,
  )
  return {
    mediaType: 'application/json-patch+json',
    parse(document) {
      const operations = parseOperations(document, limits)
      return {
        // All in order, or none (RFC 6902 §5): they work on a draft, which is not visible before the last succeeds.
        apply(target) {
          const draft = new Draft(target, limits)
          for (const operation of operations) perform(draft, operation)
          return draft.finish()
        },
      }
    },
  }
}

/** A JSON Pointer and what it says. */
interface Pointer {
  readonly text: string
  readonly tokens: readonly string[]
}

/** One operation, checked as far as that is possible without the document. */
interface Operation {
  /** Its place in the patch. */
  readonly index: number
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'
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
function parseOperations(document: JsonValue, limits: PatchLimits): readonly Operation[] {
  if (!Array.isArray(document)) {
    throw new HttpError(400, 'ERR_MALFORMED_PATCH', {
      detail: 'A JSON Patch is an array of operations.',
      errors: [{ pointer: '', detail: 'This is not an array.' }],
    })
  }
  if (document.length > limits.maxOperations) {
    throw new HttpError(413, 'ERR_TOO_LARGE', { detail: `The patch has more than ${limits.maxOperations} operations.` })
  }
  return document.map((operation: JsonValue, index) => parseOperation(operation, index, limits))
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
  if (needs === 'value' && value === undefined) {
    throw malformed(index, '/value', 'This operation needs a value.', path.text)
  }
  if (value !== undefined && isDeeperThan(value, limits.maxDepth - path.tokens.length)) {
    throw tooLarge(index, `The document may be nested at most ${limits.maxDepth} levels deep.`, path.text)
  }
  // RFC 6902 §4.4: nothing moves into itself.
  if (op === 'move' && path.text.startsWith(`${from!.text}/`)) {
    throw malformed(index, '/from', 'A value cannot be moved into itself.', path.text)
  }
  return { index, op: op as Operation['op'], path, from, value }
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

function perform(draft: Draft, operation: Operation): void {
  const { op, path, from } = operation
  // Only where the operation has one, and it has been checked.
  const value = operation.value as JsonValue
  switch (op) {
    case 'add':
      return place(draft, operation, value)
    case 'replace':
      requireValue(draft, operation, 'path')
      return draft.replace(path.tokens, value)
    case 'remove':
      requireValue(draft, operation, 'path')
      if (path.text === '') throw unfit(operation, 'path', 'The whole document can only be replaced.')
      return draft.remove(path.tokens)
    case 'move': {
      const moved = requireValue(draft, operation, 'from')
      if (from!.text === path.text) return
      draft.remove(from!.tokens)
      if (path.tokens.length > from!.tokens.length) draft.isDeepened = true
      return place(draft, operation, moved)
    }
    case 'copy': {
      const copied = requireValue(draft, operation, 'from')
      draft.share(copied, path.tokens.length)
      return place(draft, operation, copied)
    }
    case 'test':
      if (equalJson(requireValue(draft, operation, 'path'), value)) return
      throw unfit(operation, 'path', 'The value is not the one that the test expects.')
  }
}

function requireValue(draft: Draft, operation: Operation, member: 'path' | 'from'): JsonValue {
  const value = draft.find(operation[member]!.tokens)
  if (value === undefined) throw unfit(operation, member, 'There is no value at this location.')
  return value
}

function place(draft: Draft, operation: Operation, value: JsonValue): void {
  const fault = draft.add(operation.path.tokens, value)
  if (fault !== undefined) throw unfit(operation, 'path', fault)
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
function unfit(operation: Operation, member: 'path' | 'from', detail: string): HttpError {
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
