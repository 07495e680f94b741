import { randomUUID } from 'node:crypto'
import { andThen, isPromise, type MaybePromise } from '../core/handler.ts'
import { contentReply, emptyReply, encodeText, type Reply } from '../core/reply.ts'
import { isJsonType } from '../protocol/media-type.ts'
import { formatPath } from '../protocol/request-target.ts'
import { memberPath, splitPath } from '../stores/paths.ts'
import type { Content, StoredResource, WriteResult } from '../stores/types.ts'
import { hasSchema, readJson } from './content.ts'
import { readForm } from './form-content.ts'
import { type NewMember, newMemberOf } from './new-member.ts'
import { appliedPreferences, preferredReturn, unknownMembers } from './preferences.ts'
import { contentOf, type Proposal, readRawContent } from './raw-content.ts'
import { writtenReply } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { type Document, idOf, validateDocument } from './validation.ts'

/** POST to a collection: makes a new member of it (interface, POST 3 and 4). Never the same one twice. */
export function post(exchange: ResourceExchange): MaybePromise<Reply> {
  const { collection } = exchange.route
  if (collection!.content === 'raw' || isText(exchange)) {
    const content = hasSchema(exchange) ? readJson(exchange, validContent) : readRawContent(exchange).then(contentIn)
    return andThen(content, (content) =>
      andThen(store(exchange, { content: () => content, related: () => [] }), (resource) =>
        createRawReply(exchange, resource),
      ),
    )
  }
  if (!isJsonType(exchange.contentType)) return andThen(readForm(exchange), (member) => create(exchange, member))
  return readJson(exchange, postDocument)
}

const contentIn = ({ content }: Proposal): Content => content

function validContent(exchange: ResourceExchange, document: Document): MaybePromise<Content> {
  const rules = { schema: exchange.route.schema, idMember: undefined }
  return andThen(validateDocument(document, rules, unknownMembers(exchange)), ({ text }) => contentOf(exchange, text))
}

function postDocument(exchange: ResourceExchange, document: Document): MaybePromise<Reply> {
  const member = newMemberOf(exchange, document, [])
  return isPromise(member) ? member.then((member) => create(exchange, member)) : create(exchange, member)
}

/** Text becomes a resource of its own where the collection has no member for it. */
function isText({ route, contentType }: ResourceExchange): boolean {
  return route.collection!.content === 'any' && !isJsonType(contentType) && contentType === 'text/plain'
}

function create(exchange: ResourceExchange, member: NewMember): MaybePromise<Reply> {
  const { route } = exchange
  if (route.collection!.create === 'created') {
    return andThen(store(exchange, member), (resource) => createReply(exchange, resource))
  }
  let started: (() => void) | undefined
  const accepted: NewMember = {
    ...member,
    related: (name) => {
      // The work is recorded in the same atomic step as the member: no 202 without it, and it without no member.
      const work = route.context.work!.prepareProcessing(route, memberPath(collectionPath(exchange), name))
      started = work.start
      return [...member.related(name), work.record]
    },
  }
  return andThen(store(exchange, accepted), (resource) => {
    started?.()
    const fields = ['Location', locationOf(exchange, resource), ...appliedPreferences(exchange, 'accepted')]
    return emptyReply(202, [...fields, 'Cache-Control', 'no-store'])
  })
}

/** Path of the collection in the store: that of the request, without the slash of the root. */
function collectionPath(exchange: ResourceExchange): string {
  return exchange.storePath === '/' ? '' : exchange.storePath
}

function store(exchange: ResourceExchange, member: NewMember): MaybePromise<StoredResource> {
  const { context, collection } = exchange.route
  const path = collectionPath(exchange)
  if (collection!.names !== 'uuid') {
    const made = context.store.create(path, member.content, { related: member.related, signal: exchange.signal })
    return andThen(made, (result) => result.resource)
  }
  const name = randomUUID()
  const write = context.store.write(memberPath(path, name), member.content(name), {
    expect: 'absent',
    related: member.related(name),
    signal: exchange.signal,
  })
  return andThen(write, (result: WriteResult) => {
    // 122 random bits: a second one of the same name is a fault, not a coincidence.
    if (result.outcome === 'conflict') throw new Error(`A random name was taken already: ${name}`)
    return result.resource
  })
}

function locationOf(exchange: ResourceExchange, resource: StoredResource): string {
  return exchange.mount + formatPath(resource.path)
}

/** 201 with the stored representation. Cacheable only where the definition says for how long (RFC 9110 §9.3.3). */
function createReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const fields = appliedPreferences(exchange)
  const location = locationOf(exchange, resource)
  fields.push('Location', location)
  const createdCacheControl = exchange.route.createdCacheControl[exchange.sharing]
  if (preferredReturn(exchange) === 'minimal') return emptyReply(201, [...fields, 'Cache-Control', createdCacheControl])
  fields.push('Content-Location', location)
  return writtenReply(exchange, resource, 201, fields, 'with-validators', createdCacheControl)
}

/** 201 for content that is kept as it came: the answer says under which id. */
function createRawReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const cacheControl = exchange.route.createdCacheControl[exchange.sharing]
  const fields = ['Location', locationOf(exchange, resource), 'Cache-Control', cacheControl]
  if (preferredReturn(exchange) === 'minimal') {
    return emptyReply(201, [...fields, 'Preference-Applied', 'return=minimal'])
  }
  const id = idOf(splitPath(resource.path).name, exchange.route.collection!.names === 'uuid' ? 'string' : 'integer')
  return contentReply(201, encodeText(JSON.stringify({ id })), [...fields, 'Content-Type', 'application/json'])
}
