import { HttpError } from '../core/errors.ts'
import { defineMember, equalJson, isDeeperThan, isJsonObject, type JsonValue, readMember } from '../core/json.ts'
import { numberThat, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { PatchFormat } from './patch-format.ts'

/** Options of `mergePatch`. */
export interface MergePatchOptions {
  /** How deep arrays and objects of the patch may be nested. Default 100, at most 1000. */
  readonly maxDepth?: number
}

const DEPTH = numberThat((value) => value >= 1 && value <= 1000, 'a number from 1 to 1000')

const OPTIONS = { maxDepth: withDefault(DEPTH, 100) } satisfies OptionTable<MergePatchOptions>

/**
 * The patch format `application/merge-patch+json` (RFC 7396). A member that is null removes, so null itself cannot be
 * stored by such a patch.
 * @throws TypeError for an option that does not exist or makes no sense
 */
export function mergePatch(options?: MergePatchOptions): PatchFormat {
  const { maxDepth } = resolveOptions('mergePatch', options, OPTIONS)
  return {
    mediaType: 'application/merge-patch+json',
    parse(document) {
      if (isDeeperThan(document, maxDepth)) {
        throw new HttpError(413, 'ERR_TOO_LARGE', { detail: `The patch is nested more than ${maxDepth} levels deep.` })
      }
      return { apply: (target) => merge(target, document) }
    },
  }
}

/** RFC 7396 §2, except that the target is not changed, and is itself the result where the patch changes nothing. */
function merge(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return target !== undefined && equalJson(target, patch) ? target : patch
  let copy: Record<string, JsonValue> | undefined
  let base = target
  if (!isJsonObject(base)) base = copy = {}
  for (const name of Object.keys(patch)) {
    const change = patch[name]!
    const current = readMember(base, name)
    const next = change === null ? undefined : merge(current, change)
    if (next === current) continue
    copy ??= { ...base }
    if (next === undefined) delete copy[name]
    else defineMember(copy, name, next)
  }
  return copy ?? base
}
