import { remove } from '../actions/delete.ts'
import { get } from '../actions/get.ts'
import type { FileOptions } from '../actions/hook-types.ts'
import { createFileReplacement, loadFile } from '../actions/item-files.ts'
import { loadDocument, patch } from '../actions/patch.ts'
import { put, unlessForeseen, wherePageFollows } from '../actions/put.ts'
import type { Action, ContentRule, Route } from '../actions/route.ts'
import type { RouteEntry } from '../actions/route-table.ts'
import { loadFileTarget, loadPresent, loadReplaced, loadReplacedOrHidden } from '../actions/state.ts'
import { changeOptions } from '../core/options.ts'
import type { PatchFormat } from '../patch-formats/patch-format.ts'
import { includesJson, isJsonRange, isJsonType, NO_PARAMETERS, parseMediaType } from '../protocol/media-type.ts'
import type { Method } from '../protocol/request-line.ts'
import { completeRoute, JSON_ONLY, restrict, type ServiceDefaults } from './compile-route.ts'
import type { SharedOptions, SingletonOptions } from './document-options.ts'

/** What a route knows that its definition does not say. */
type OwnFacts = 'kind' | 'definition' | 'storePath' | 'putResponse' | 'idMember' | 'showsWork' | 'createsByPut'
interface DocumentFacts extends Partial<Pick<Route, OwnFacts | 'fileNames' | 'isFile' | 'indexing' | 'hasParent'>> {
  /** Of a file that PUT stores anew. */
  readonly file?: FileOptions
}

/** The route of a resource that has a representation of its own. */
export function compileDocument(
  pattern: string,
  options: SharedOptions,
  defaults: ServiceDefaults,
  methods: readonly Method[],
  { file, ...facts }: DocumentFacts = {},
): Route {
  const { types = ['*/*'], representations = [] } = options
  const isJson = types.every(isJsonRange)
  const { limits } = defaults.context
  // A file of an item has the limit that it has in a form.
  const fileSize = file === undefined ? Number.POSITIVE_INFINITY : limits.fileSize
  const maxSize = Math.min(options.maxSize ?? Number.POSITIVE_INFINITY, fileSize)
  const patchFormats = listPatchFormats(pattern, options, defaults)
  const replacement: ContentRule = {
    types,
    hint: 'Accept',
    limit: (essence) => (isJson || (options.schema !== undefined && isJsonType(essence)) ? limits.bodySize : maxSize),
    ...(types.includes('*/*') || types.includes('application/octet-stream')
      ? { defaultType: 'application/octet-stream' }
      : {}),
  }
  const patches: ContentRule = {
    types: patchFormats.map((format) => format.mediaType),
    hint: 'Accept-Patch',
    limit: () => limits.bodySize,
  }
  const actions: Partial<Record<Method, Action>> = {
    GET: { load: facts.isFile === true ? loadFile : loadPresent, perform: get, content: undefined },
    PUT:
      file === undefined
        ? { load: loadForPut(facts, options), perform: put, content: replacement }
        : { load: loadFileTarget, perform: createFileReplacement(file), content: replacement },
    DELETE: { load: loadPresent, perform: remove, content: undefined },
  }
  if (types.some(includesJson)) actions.PATCH = { load: loadDocument, perform: patch, content: patches }
  const isUsual = isJson && !types[0]!.includes('*')
  return completeRoute(pattern, options, defaults, {
    ...facts,
    patchFormats,
    collection: undefined,
    actions: restrict(restrict(actions, methods), options.methods),
    types,
    isJson,
    maxSize: isJson || options.schema !== undefined ? Number.POSITIVE_INFINITY : maxSize,
    usualType: isUsual ? { essence: types[0]!, parameters: NO_PARAMETERS } : undefined,
    offers: representations.map(({ type }) => requireMediaType(type, pattern)),
    renditions: representations,
    accept: options.accept ?? (isJson || representations.length > 0 ? 'strict' : 'lenient'),
  })
}

function loadForPut({ kind, indexing, createsByPut }: DocumentFacts, { deletion }: SharedOptions): Action['load'] {
  const replacesOnly = createsByPut === false
  const seesHidden = indexing?.scope !== undefined || (replacesOnly && deletion === 'soft')
  const load = seesHidden ? loadReplacedOrHidden : unlessForeseen(replacesOnly ? loadPresent : loadReplaced)
  return kind === 'item' && createsByPut === true ? wherePageFollows(load) : load
}

/** @throws TypeError where `application/json` is to be a merge patch and the service takes none */
function listPatchFormats(
  pattern: string,
  { jsonAsMergePatch = false }: SharedOptions,
  { context: { patchFormats } }: ServiceDefaults,
): readonly PatchFormat[] {
  if (!jsonAsMergePatch) return patchFormats
  const merge = patchFormats.find(({ mediaType }) => mediaType === 'application/merge-patch+json')
  if (merge !== undefined) {
    return [...patchFormats, { mediaType: 'application/json', parse: (document) => merge.parse(document) }]
  }
  throw new TypeError(
    `${pattern} has jsonAsMergePatch, which needs mergePatch() among the patchFormats of the service.`,
  )
}

/** The routes of a resource and its aliases. */
export function compileSingleton(
  pattern: string,
  options: Readonly<SingletonOptions>,
  defaults: ServiceDefaults,
): readonly RouteEntry[] {
  if (pattern.includes('{')) {
    throw new TypeError(`${pattern} cannot be a singleton, which is one resource for all values: use document().`)
  }
  const { aliases = [] } = options
  const json = changeOptions<SharedOptions>(options, { types: JSON_ONLY })
  const route = compileDocument(pattern, json, defaults, ['GET', 'PUT', 'PATCH'], {
    kind: 'singleton',
    storePath: pattern,
    putResponse: options.putResponse ?? 'representation',
  })
  return [pattern, ...aliases].map((path) => ({ pattern: path, route }))
}

function requireMediaType(type: string, pattern: string) {
  const parsed = parseMediaType(type)
  // A range names no content that can be sent.
  if (parsed === undefined || parsed.essence.includes('*'))
    throw new TypeError(`${pattern} offers a representation of no valid media type: "${type}".`)
  return parsed
}
