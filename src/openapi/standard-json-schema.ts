import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { Facts } from './facts.ts'

type Direction = 'input' | 'output'
type Convert = (options: { readonly target: string }) => JsonValue

/**
 * The JSON Schema of a definition: its own, or that of its schema where that has the Standard JSON Schema interface.
 * @returns `undefined` where it is unknown: a validator may support one direction only, or use what JSON Schema cannot express
 */
export function readJsonSchema(
  { documentation, schema }: Pick<Facts, 'documentation' | 'schema'>,
  direction: Direction,
): JsonObject | undefined {
  if (documentation.jsonSchema !== undefined) return documentation.jsonSchema[direction]
  const standard = schema?.['~standard'] as { readonly jsonSchema?: Partial<Record<Direction, Convert>> } | undefined
  const convert = standard?.jsonSchema?.[direction]
  if (typeof convert !== 'function') return undefined
  try {
    const converted = convert({ target: 'draft-2020-12' })
    // Through text, as it will be sent: without members that are undefined.
    return isJsonObject(converted) ? (JSON.parse(JSON.stringify(converted)) as JsonObject) : undefined
  } catch {
    return undefined // a transformation or a bigint, which JSON Schema cannot express
  }
}
