import { HttpError } from '../core/errors.ts'
import {
  defineMember,
  equalJson,
  formatPointerStep,
  hasMembers,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  joinMembers,
  readMember,
} from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { FileFacts, FileOptions } from './hook-types.ts'
import type { Route } from './route.ts'
import {
  type Document,
  invalid,
  readGiven,
  requireKeptNumbers,
  validateDocument,
  WrittenDocument,
} from './validation.ts'

/**
 * Properties that the server gives an item beside its id: what it knows of each file, and how far the work on it is. They
 * are taken off before the schema sees the item and added after it, and no client changes them.
 */

/** Properties of an item that its work sets. */
export const WORK: readonly string[] = ['state', 'problem']
const NONE: readonly string[] = []

/** Names of all properties that the server gives items of a route. @param files those that are about files */
export function propertiesOfServer(
  { idMember, showsWork }: Pick<Route, 'idMember' | 'showsWork'>,
  files: readonly string[],
): readonly string[] {
  return [...(idMember === undefined ? NONE : ['id']), ...files, ...(showsWork ? WORK : NONE)]
}

/** What an item says of a file. @throws TypeError for a promise, a Map and the like */
export function summarizeFile(describe: FileOptions['describe'], facts: FileFacts): JsonValue | undefined {
  // The file keeps its name, whatever the hook makes of its own copy.
  const own = { ...facts }
  return describe === undefined ? own : readGiven(describe(own), '"describe" of a file')
}

/** Takes properties off a value, which is itself the rest where it has none of them. */
export function splitProperties(
  value: JsonValue | undefined,
  names: readonly string[],
): { readonly owned: JsonObject; readonly rest: JsonValue } {
  const owned: Record<string, JsonValue> = {}
  if (!isJsonObject(value)) return { owned, rest: value ?? null }
  // To copy 100,000 members takes twice as long as to parse them.
  if (!names.some((name) => Object.hasOwn(value, name))) return { owned, rest: value }
  const rest: Record<string, JsonValue> = {}
  for (const name of Object.keys(value)) defineMember(names.includes(name) ? owned : rest, name, value[name]!)
  return { owned, rest }
}

/** Adds properties at the end of a document; its text stays as it is before them. */
export function addProperties(document: Document, owned: JsonObject): Document {
  const { value } = document
  if (!hasMembers(owned) || !isJsonObject(value)) return document
  const complete = joinMembers(value, owned)
  if (document instanceof WrittenDocument) return new WrittenDocument(complete)
  const head = document.text.slice(0, document.text.lastIndexOf('}'))
  return {
    value: complete,
    text: `${head}${hasMembers(value) ? ',' : ''}${JSON.stringify(owned).slice(1)}`,
    isVerbatim: false,
  }
}

/**
 * Validates a document by the schema of a route, which does not see the properties of the server.
 * @param files names of the properties that are about files
 * @throws HttpError 422
 */
export function validateItem(
  document: Document,
  route: Pick<Route, 'schema' | 'idMember' | 'showsWork'>,
  unknown: 'strip' | 'refuse',
  files: readonly string[],
): MaybePromise<Document> {
  const names = route.showsWork ? [...files, ...WORK] : files
  if (names.length === 0 || route.schema === undefined) return validateDocument(document, route, unknown)
  const { owned, rest } = splitProperties(document.value, names)
  const input = Object.keys(owned).length > 0 ? new WrittenDocument(rest) : document
  return andThen(validateDocument(input, route, unknown), (valid) => {
    if (valid === input) return document
    requireKeptNumbers(document)
    // A default of the schema says nothing of a file that is not there.
    const { rest } = splitProperties(valid.value, names)
    return addProperties(new WrittenDocument(rest), owned)
  })
}

/**
 * Checks that an item says of its files what the server says.
 * @param given what the client sent
 * @throws HttpError 409 for anything else, as for another id
 */
export function requireSameFacts(given: JsonObject, facts: JsonObject, names: Iterable<string>): void {
  const wrong = [...names].filter((name) => !equalJson(readMember(given, name), readMember(facts, name)))
  if (wrong.length === 0) return
  throw new HttpError(409, 'ERR_CONFLICT', {
    detail: 'The server sets the properties that describe files.',
    errors: wrong.map((name) => ({
      pointer: formatPointerStep(name),
      detail: 'The server has set another value.',
    })),
  })
}

/** @throws HttpError 422 for a new item that says itself what only the server can know of its files */
export function refuseFacts(value: JsonObject, names: readonly string[]): void {
  const given = names.filter((name) => Object.hasOwn(value, name))
  if (given.length === 0) return
  throw invalid(given.map((name) => ({ pointer: formatPointerStep(name), detail: 'A file is expected here.' })))
}
