import { equalJson, type JsonValue } from '../core/json.ts'
import { SIZE, type ValueRule, withDefault } from '../core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import {
  addValue,
  createDraft,
  type Draft,
  findValue,
  finishDraft,
  removeValue,
  replaceValue,
  shareValue,
} from './draft.ts'
import { type Operation, type PatchLimits, parseOperations, unfit } from './json-patch-operations.ts'
import type { PatchFormat } from './types.ts'

export type JsonPatchOptions = Partial<PatchLimits>

const DEPTH: ValueRule = {
  accepts: (value) => typeof value === 'number' && value >= 0 && value <= 1000,
  text: 'a number from 0 to 1000',
}

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
      return { apply: (target) => applyOperations(operations, target, limits) }
    },
  }
}

/** All operations in order, or none (RFC 6902 §5): they work on a draft, which is not visible before the last succeeds. */
function applyOperations(operations: readonly Operation[], target: JsonValue, limits: PatchLimits): JsonValue {
  const draft = createDraft(target, limits)
  for (const operation of operations) perform(draft, operation)
  return finishDraft(draft, target)
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
      return replaceValue(draft, path.tokens, value)
    case 'remove':
      requireValue(draft, operation, 'path')
      if (path.text === '') throw unfit(operation, 'path', 'The whole document can only be replaced.')
      return removeValue(draft, path.tokens)
    case 'move': {
      const moved = requireValue(draft, operation, 'from')
      if (from!.text === path.text) return
      removeValue(draft, from!.tokens)
      if (path.tokens.length > from!.tokens.length) draft.isDeepened = true
      return place(draft, operation, moved)
    }
    case 'copy': {
      const copied = requireValue(draft, operation, 'from')
      shareValue(draft, copied, path.tokens.length)
      return place(draft, operation, copied)
    }
    case 'test':
      if (equalJson(requireValue(draft, operation, 'path'), value)) return
      throw unfit(operation, 'path', 'The value is not the one that the test expects.')
  }
}

function requireValue(draft: Draft, operation: Operation, member: 'path' | 'from'): JsonValue {
  const value = findValue(draft, operation[member]!.tokens)
  if (value === undefined) throw unfit(operation, member, 'There is no value at this location.')
  return value
}

function place(draft: Draft, operation: Operation, value: JsonValue): void {
  const fault = addValue(draft, operation.path.tokens, value)
  if (fault !== undefined) throw unfit(operation, 'path', fault)
}
