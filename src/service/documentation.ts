import type { Documentation } from '../actions/route.ts'
import type { JsonObject } from '../core/json.ts'
import { formatHttpDate } from '../protocol/http-date.ts'
import type { ResourceOptions } from './resource-options.ts'

/** What a definition says about itself, with its dates as fields. */
export function compileDocumentation(options: Readonly<ResourceOptions>): Documentation {
  const { title, description, examples = {}, jsonSchema, deprecated, sunset } = options
  const fields: string[] = []
  // RFC 9745 §2.1: a Date of Structured Fields, in seconds.
  if (deprecated !== undefined) fields.push('Deprecation', `@${Math.floor(new Date(deprecated).getTime() / 1000)}`)
  if (sunset !== undefined) fields.push('Sunset', formatHttpDate(new Date(sunset).getTime()))
  return {
    title,
    description,
    examples,
    jsonSchema: jsonSchema === undefined ? undefined : readDirections(jsonSchema),
    isDeprecated: deprecated !== undefined,
    fields,
  }
}

function readDirections(given: NonNullable<ResourceOptions['jsonSchema']>): Documentation['jsonSchema'] {
  const { input, output } = given as { readonly input?: JsonObject; readonly output?: JsonObject }
  return input === undefined || output === undefined ? { input: given, output: given } : { input, output }
}
