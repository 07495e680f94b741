import type { JsonObject, JsonValue } from '../../src/core/json.ts'

/** One answer that a description says can be given. */
export interface Case {
  readonly pattern: string
  readonly definition: string
  readonly method: string
  readonly status: number
  /** The end of the type of the problem. */
  readonly problem: string | undefined
  readonly operation: JsonObject
}

/** Everything that a description says can be answered. */
export function listCases(document: JsonObject): readonly Case[] {
  const resolve = (value: JsonValue): JsonObject => {
    const [, , section, name] = String((value as JsonObject)['$ref'] ?? '').split('/')
    return name === undefined
      ? (value as JsonObject)
      : (((document['components'] as JsonObject)[section!] as JsonObject)[name] as JsonObject)
  }
  return Object.entries(document['paths'] as JsonObject).flatMap(([pattern, item]) =>
    Object.entries(item as JsonObject).flatMap(([method, operation]) => {
      if (method === 'parameters') return []
      const { responses } = operation as { responses: JsonObject }
      return Object.entries(responses).flatMap(([status, response]) => {
        if (status === 'default') return []
        const text = JSON.stringify(resolve(response)['content'] ?? null)
        const problems =
          Number(status) < 400
            ? []
            : [...new Set(text.match(/(?<=urn:problem-type:http-resource-service:|http-problem-types#)[\w-]+/g))]
        const base = {
          pattern,
          definition: pattern
            .replace(/(?<=^\/(?:users|tickets|nodes|jobs|notes|files|orders))\/\{id\}.*$/, '')
            .replace('.json', ''),
          method: method.toUpperCase(),
          status: Number(status),
          operation: operation as JsonObject,
        }
        return problems.length === 0
          ? [{ ...base, problem: undefined }]
          : problems.map((problem): Case => ({ ...base, problem }))
      })
    }),
  )
}
