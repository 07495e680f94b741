import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { readField } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import { isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { type Place, placeBelow } from '../core/place.ts'
import type { HostRequest } from '../core/request-view.ts'
import { CONTENT_FIELDS, removeContentFields } from '../core/write-head.ts'
import { mergeVary } from '../protocol/field-value.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { createAdapter, type HostAnswer } from './create-adapter.ts'
import type { ContentHook, FastifyInstanceLike, FastifyReplyLike } from './fastify-types.ts'
import { checkPrefix, mount, placeHandler } from './node.ts'

export type { FastifyInstanceLike, FastifyReplyLike, FastifyRequestLike } from './fastify-types.ts'

/** A Fastify plugin: `app.register(plugin, { prefix })`. */
export type FastifyPlugin = (instance: FastifyInstanceLike, options: { readonly prefix?: string }) => Promise<void>

const adapt = createAdapter<FastifyReplyLike, void>({
  name: 'fastifyPlugin',
  routesFirst: true,
  request: ({ request }) => request.raw as IncomingMessage,
  response: ({ raw }) => raw as ServerResponse,
  hostContext: ({ request }) => request,
  params: ({ request }) => request.params as Readonly<Record<string, string>>,
  field(reply, name) {
    const value = reply.getHeader(name)
    return value === undefined ? undefined : String(value)
  },
  setField: (reply, name, value) => void reply.header(name, value),
  answer,
  release(reply) {
    reply.hijack()
    const res = reply.raw as ServerResponse
    if (res.headersSent) return
    // What hooks have set lives on Fastify's reply only.
    for (const [name, value] of Object.entries(reply.getHeaders())) res.setHeader(name, value as string)
  },
  fail(reply, error) {
    reply.send(error instanceof Error ? error : new Error('A request failed.', { cause: error }))
  },
})

type Serve = (reply: FastifyReplyLike, next: () => void) => MaybePromise<void>

/** How many plugins have been made. */
let count = 0

/**
 * Makes a Fastify plugin of a service or a standalone middleware.
 *
 * A service, `range` and `patch` are routes: `register` them with a `prefix`, and all hooks of the scope around them run first,
 * `preHandler` included. Content reaches them as it comes. Requests that they have nothing for end in Fastify's own 404.
 *
 * Other middleware becomes hooks: they cover every route of the scope that they are registered in, beside them and
 * below, and run in `onRequest` (`bodyParse`: in `preParsing`, in the place of Fastify's parsers). With a `prefix`
 * they cover what is below it.
 *
 * Small responses go through the reply, so that `onSend` hooks see and may change them. Unexpected errors go to Fastify's error
 * handler where the handler forwards them.
 * @throws TypeError for anything but a service or a standalone middleware, and for `methodOverride`, which Fastify's
 *   router does not wait for; when registered, for a prefix of anything but plain segments and `:names`
 * @example
 * await app.register(fastifyPlugin(auth({ schemes })))
 * await app.register(fastifyPlugin(service), { prefix: '/api' })
 */
export function fastifyPlugin(handler: Handler): FastifyPlugin
export function fastifyPlugin(handler: Handler, ...others: unknown[]): FastifyPlugin {
  if (others.length > 0) {
    throw new TypeError("fastifyPlugin takes no options: app.register(fastifyPlugin(service), { prefix: '/api' }).")
  }
  adapt(handler)
  const plugin = handler.role === 'endpoint' ? createRoutePlugin(handler) : createHookPlugin(handler)
  // Fastify itself refuses the plugin where its version is another one. `@fastify/autoload` loads one plugin of each name.
  const meta = { name: `http-resource-service-${++count}`, fastify: '>=5' }
  return Object.assign(plugin, { [Symbol.for('plugin-meta')]: meta })
}

/** The handler below a prefix that Fastify's router has found already, by rules of its own: nothing is outside of it. */
function placeInScope(handler: Handler, scope: string, prefix = ''): Serve {
  const inScope = (place: Place): Place => placeBelow(place, scope) ?? { ...place, isClear: false }
  return adapt(placeHandler(handler, (place) => placeBelow(inScope(place), prefix)))
}

/** @throws TypeError for the prefix of a scope that Fastify's router would never find: it compares decoded paths */
function scopeOf({ prefix }: FastifyInstanceLike): string {
  if (!prefix.includes('%')) return checkScope(prefix)
  throw new TypeError(`fastifyPlugin takes a prefix as Fastify compares it, without escapes, not "${prefix}".`)
}

/** @returns the prefix as it is sent @throws TypeError for one that could not be found again in a target */
function checkScope(prefix: string): string {
  const scope = prefix.replace(/\/$/, '').replace(/[^!-~]+/g, encodeURIComponent)
  checkPrefix('fastifyPlugin', scope)
  const isPlain = scope.split('/').every((segment) => /^(?::\w+|[^:()]*)$/.test(segment))
  if (!isPlain) throw new TypeError(`fastifyPlugin takes a prefix of plain segments and :names, not "${prefix}".`)
  return scope
}

/**
 * The services and the middleware of one scope and prefix: each is asked in turn, through routes that the first has
 * added.
 */
interface Endpoints {
  readonly list: Serve[]
  readonly methods: Set<string>
}

const scopes = new WeakMap<object, Map<string, Endpoints>>()

function endpointsOf(scope: object, prefix: string): Endpoints {
  let byPrefix = scopes.get(scope)
  if (byPrefix === undefined) scopes.set(scope, (byPrefix = new Map()))
  let endpoints = byPrefix.get(prefix)
  if (endpoints === undefined) byPrefix.set(prefix, (endpoints = { list: [], methods: new Set() }))
  return endpoints
}

function createRoutePlugin(handler: Handler): FastifyPlugin {
  return async (instance) => {
    const scope = scopeOf(instance)
    const endpoints = endpointsOf(Object.getPrototypeOf(instance), scope)
    endpoints.list.push(placeInScope(handler, scope))
    const method = (handler.methods ?? addMethods(instance)).filter((method) => !endpoints.methods.has(method))
    if (method.length === 0) return
    instance.removeAllContentTypeParsers()
    instance.addContentTypeParser('*', (_request, _payload, done) => done(null))
    instance.addHook('preParsing', hideMalformedType)
    for (const name of method) endpoints.methods.add(name)
    for (const url of scope === '' ? ['/*'] : ['/*', '/']) {
      instance.route({ method: [...method], url, handler: (_request, reply) => runFrom(endpoints.list, 0, reply) })
    }
  }
}

/** A method that Fastify does not know never reaches a plugin; 501 and 405 are the service's to say. */
function addMethods(instance: FastifyInstanceLike): readonly string[] {
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !instance.supportedMethods.includes(method)) {
      instance.addHttpMethod(method, { hasBody: true })
    }
  }
  return instance.supportedMethods
}

function runFrom(list: readonly Serve[], index: number, reply: FastifyReplyLike): void {
  const serve = list[index]
  if (serve === undefined) reply.callNotFound()
  else start(serve, reply, () => runFrom(list, index + 1, reply))
}

function start(serve: Serve, reply: FastifyReplyLike, next: () => void): void {
  const running = serve(reply, next)
  if (isPromise(running)) running.then(undefined, (error) => reply.send(error))
}

/** Fastify refuses a malformed Content-Type, and QUERY without one, before preHandler: the service refuses both, after it. */
const hideMalformedType: ContentHook = (request, _reply, _payload, done) => {
  const { method, headers } = request.raw as IncomingMessage
  const type = readField(headers, 'content-type')
  const isRefused = type === undefined ? method === 'QUERY' : parseMediaType(type) === undefined
  if (isRefused) request.headers = { 'content-type': 'application/octet-stream' }
  done()
}

function createHookPlugin(handler: Handler): FastifyPlugin {
  const plugin: FastifyPlugin = async (instance, options) => {
    const scope = scopeOf(instance)
    const prefix = checkScope(options.prefix ?? '')
    const serve = placeInScope(handler, scope, prefix)
    if (handler.role === 'body-parser') takeContent(instance, serve)
    else instance.addHook('onRequest', (_request, reply, done) => start(serve, reply, done))
    instance.addHook('onSend', keepVary)
    if (scope !== '' && handler.methods?.length !== 0) {
      // Hooks of a scope with a prefix run for its routes only; for a preflight there may be none.
      const serveElsewhere = adapt(mount(scope + prefix, handler))
      rootOf(instance).addHook('onRequest', (request, reply, done) => {
        if (request.is404) start(serveElsewhere, reply, done)
        else done()
      })
    }
  }
  // Hooks stay in the plugin that adds them, unless it has this mark. These are for the scope around.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true })
}

/** The application that a scope belongs to: a scope is made with the one around it as prototype. */
function rootOf(instance: FastifyInstanceLike): FastifyInstanceLike {
  const around = Object.getPrototypeOf(instance)
  return around === null || around === Object.prototype ? instance : rootOf(around)
}

/** Reads content in the place of Fastify's parsers, which would wait without end for content that has been read. */
function takeContent(instance: FastifyInstanceLike, serve: Serve): void {
  instance.removeAllContentTypeParsers()
  instance.addContentTypeParser('*', ({ raw }, _payload, done) => done(null, (raw as HostRequest).body))
  instance.addHook('preParsing', (request, reply, _payload, done) => {
    start(serve, reply, () => {
      if ((request.raw as HostRequest).body === undefined) return done()
      const type = readField((request.raw as IncomingMessage).headers, 'content-type')
      if (type !== undefined && request.server.hasContentTypeParser(type)) {
        return done(
          new TypeError('fastifyPlugin(bodyParse()) has to be registered before the plugins that it reads for.'),
        )
      }
      done(null, Readable.from([]))
    })
  })
}

/** What a route sets on the reply would replace Vary that a middleware has set on the response. */
const keepVary: ContentHook = (_request, reply, payload, done) => {
  const vary = (reply.raw as ServerResponse).getHeader('vary')
  if (vary !== undefined) reply.header('vary', mergeVary(String(reply.getHeader('vary')), String(vary)))
  done(null, payload)
}

function answer(reply: FastifyReplyLike, { status, fields, body }: HostAnswer): void {
  // `@fastify/compress` does not read Cache-Control, and up to version 8 it compresses parts: it obeys this field of a request.
  if (/no-transform/i.test(String(fields.get('Cache-Control')))) reply.request.headers = { 'x-no-compression': 'true' }
  reply.code(status)
  for (const name of CONTENT_FIELDS) reply.removeHeader(name)
  removeContentFields(reply.raw as ServerResponse)
  for (const [name, value] of fields) reply.header(name, value)
  // Text would be given a charset.
  reply.send(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
}
