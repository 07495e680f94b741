import { onceFor } from '../core/caches.ts'
import { HttpError } from '../core/errors.ts'
import { formatPointerStep, isJsonObject, type JsonObject, joinMembers } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { formatPath } from '../protocol/request-line.ts'
import { memberPath } from '../stores/rules.ts'
import type { Content, NewState, RelatedWrite } from '../stores/types.ts'
import { contentOf } from './content.ts'
import { indexContent, takeBeforeId } from './indexing.ts'
import { isOwnPath, othersBelow } from './other-definitions.ts'
import { collectionPathOf, fitsTarget, type ResourceExchange, unknownMembers } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { scopeNamesOf, splitScope } from './scope.ts'
import { addProperties, propertiesOfServer, refuseFacts, validateItem, WORK } from './server-properties.ts'
import { type Document, idOf, insertId, invalid, requireKeptNumbers, WrittenDocument } from './validation.ts'
import { stamp } from './write-hooks.ts'

const NO_FACTS: JsonObject = Object.freeze({})

/** A member of a collection that is complete but for its name. */
export interface NewMember {
  readonly content: (name: string) => Content
  /** What is written with it in the same atomic step. */
  readonly related: (name: string, state?: NewState) => readonly RelatedWrite[]
  /** What has been taken in for it, to be given up where it is not stored. */
  readonly taken: readonly Content[]
  /** The same member after `beforeWrite`, to be called before each attempt; left out where there is no hook. */
  readonly stamp?: () => MaybePromise<NewMember>
}

/** A file that belongs to a new member. */
export interface MemberFile {
  readonly name: string
  readonly content: Content
}

/** The most characters of a name that the server gives. */
const LONGEST_NAME = '-'.repeat(36)

/** Whether the service takes a target that is a new member, or a file of one. @param file the name of the file */
export function fitsBelow(exchange: ResourceExchange, file = ''): boolean {
  return fitsTarget(exchange, LONGEST_NAME + (file === '' ? '' : formatPath(`/${file}`)))
}

/** Whether other definitions are for paths right below: few collections have some, and to find a route costs a POST 2 %. */
const hasNeighbours = onceFor((route: Route) => othersBelow(route).length > 0)

/** @throws HttpError 409 for a new item at a path that another definition is for */
function requireOwnItem(route: Route, collection: string, name: string): void {
  if (!hasNeighbours(route) || isOwnPath(route, memberPath(collection, name))) return
  throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The path of the new item is one of another kind of resource.' })
}

/** @throws HttpError 422 for a file at a path that another definition is for */
function requireOwnFile(route: Route, path: string, name: string): void {
  if (isOwnPath(route, path)) return
  throw invalid([{ pointer: formatPointerStep(name), detail: 'No file is expected here.' }])
}

/** Makes a member of content that is kept as it came. */
export function rawMemberOf(exchange: ResourceExchange, content: Content): NewMember {
  return {
    content: (name) => {
      requireOwnItem(exchange.route, collectionPathOf(exchange), name)
      return content
    },
    related: () => [],
    taken: [content],
  }
}

/**
 * Makes a member of a JSON document: validated, then given what the server says of its files and the id that the store
 * assigns.
 * @throws HttpError 422 for an invalid document, or one that brings an id of its own; once it has a name, 409 and 422 for
 *   paths of other definitions
 */
export function newMemberOf(
  exchange: ResourceExchange,
  document: Document,
  files: readonly MemberFile[],
  facts: JsonObject = NO_FACTS,
): MaybePromise<NewMember> {
  const { route } = exchange
  const { indexing } = route
  const { document: own, owned } = splitScope(exchange, document)
  const { value } = own
  if (!isJsonObject(value)) throw invalid([{ pointer: '', detail: 'A JSON object is expected.' }])
  if (Object.hasOwn(value, 'id') || Object.hasOwn(facts, 'id'))
    throw invalid([{ pointer: '/id', detail: 'The server assigns the id.' }])
  const kind = route.collection!.ids === 'uuid' ? 'string' : 'integer'
  const names = typeof route.fileNames === 'string' ? Object.keys(facts) : route.fileNames
  refuseFacts(value, names)
  const rules = { schema: route.schema, idMember: kind, showsWork: false } as const
  const isAccepted = route.collection!.create === 'accepted'
  const make = (validated: Document, stage: 'before-hook' | 'final'): NewMember => {
    const complete = addProperties(addProperties(validated, facts), owned)
    const valid = isAccepted ? markPending(complete) : complete
    const base = collectionPathOf(exchange)
    // Refused before the store is asked for a name.
    const taken = stage === 'final' && indexing !== undefined ? takeBeforeId(indexing, base, valid.value) : undefined
    return {
      content: (name) => {
        requireOwnItem(route, base, name)
        const id = idOf(name, kind)
        const value = valid.value as JsonObject
        const content = contentOf(exchange, insertId(valid.text, value, id), 'application/json')
        if (indexing === undefined) return content
        // The scope of another caller may have taught the index a further property meanwhile.
        if (taken?.index.version === indexing.version) return { ...content, indexed: taken }
        return indexContent(route, memberPath(base, name), content, { id, ...value })
      },
      related: (name) =>
        files.map((file) => {
          const path = memberPath(memberPath(base, name), file.name)
          requireOwnFile(route, path, file.name)
          return { path, content: file.content }
        }),
      taken: files.map(({ content }) => content),
    }
  }
  const kept = [...names, ...scopeNamesOf(route)]
  return andThen(validateItem(own, rules, unknownMembers(exchange), kept), (validated) => {
    if (route.beforeWrite === undefined) return make(validated, 'final')
    const properties = propertiesOfServer({ idMember: kind, showsWork: isAccepted }, kept)
    const about = { kind: 'created', current: undefined, properties } as const
    const stampMember = () => andThen(stamp(exchange, validated, about), (stamped) => make(stamped, 'final'))
    return { ...make(validated, 'before-hook'), stamp: stampMember }
  })
}

/** Accepted work shows on the member itself: `pending`, then `ready` or `failed`. The work writes it anew. */
function markPending(document: Document): Document {
  const value = document.value as JsonObject
  const given = WORK.find((name) => Object.hasOwn(value, name))
  if (given !== undefined) throw invalid([{ pointer: `/${given}`, detail: 'The server sets the state.' }])
  requireKeptNumbers(document)
  return new WrittenDocument(joinMembers(value, { state: 'pending' }))
}
