import { checkAuthorization } from '../actions/authorization.ts'
import { addWantedDigests } from '../actions/get.ts'
import { checkRepeated, orFirstAnswer } from '../actions/keyed-request.ts'
import { ResourceExchange } from '../actions/resource-exchange.ts'
import {
  checkContent,
  evaluateConditions,
  loadCurrent,
  negotiate,
  negotiateStored,
  seeHidden,
  selectContent,
} from '../actions/resource-steps.ts'
import type { Route } from '../actions/route.ts'
import { applyScope } from '../actions/scope.ts'
import * as target from '../actions/target-steps.ts'
import { createActivity } from '../core/activity.ts'
import { decideInOrder } from '../core/connection.ts'
import type { Exchange } from '../core/exchange.ts'
import { wantsDigests } from '../core/fields.ts'
import type { Handler, Step } from '../core/handler.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { createHandler } from '../core/node-handler.ts'
import type { Reply } from '../core/reply.ts'
import { rememberView } from '../openapi/inputs.ts'
import { isReadMethod, isSafeMethod, type Method } from '../protocol/request-line.ts'
import type { ResourceStore } from '../stores/types.ts'
import { createAccess } from './access.ts'
import { compileService } from './compile-service.ts'
import { createExplainer } from './operator-reports.ts'
import { readServiceOptions, type ServiceOptions } from './service-options.ts'

/** A service: a handler for any host, with what belongs to its life. */
export interface ResourceService extends Handler {
  /** Does one piece of accepted work, for a queue of the user's own. @returns whether it was there to be done */
  runOperation(id: string): Promise<boolean>
  /**
   * Drains the service: takes no more accepted work, and makes each further response the last on its connection.
   * @returns fulfilled when the requests and the work that are under way are done, and the store is needed no more. It
   *   waits at most 5 seconds for work, and for requests whose clients have left. New connections are the server's to
   *   refuse, by its own `close`. May be called more than once
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Makes a service that exposes the resources of a store through the standard methods.
 *
 * It is a request listener for `node:http`, `node:https` and `node:http2`, and middleware for Express and Connect;
 * adapters for Koa, Fastify and Hono have subpaths of their own.
 * @param store where resources are kept
 * @param options see {@link ServiceOptions}; all have defaults
 * @throws TypeError for an object without the methods of a store, and for options that do not exist or contradict each other
 * @example
 * createServer(createResourceService(memoryStore())).listen(8080)
 */
export function createResourceService(store: ResourceStore, options?: ServiceOptions): ResourceService {
  const settings = readServiceOptions(options)
  const { routes, operations, records, view, afterCommits } = compileService(store, settings)
  const access = createAccess(settings)

  // The order of decisions (RFC 9110 §13.2.1): what the fields say before what the store says, what the store says
  // before the content is read, and one compare-and-swap at the end.
  const requestSteps = {
    answerMetadata: access.answerMetadata, // 200 304 405 at the well-known URI of the metadata (RFC 9728), which has no route
    findRoute: target.createRouteStep(routes, settings), // hands over unmatched requests
    checkTarget: target.createTargetStep(settings.maxTargetLength, access.isSecure), // 414 400 431 505 501 421
    checkHost: access.checkHost, // 421
    requireHttps: access.checkTransport, // 403
    overrideMethod: access.overrideMethod, // 400
    applyCors: access.applyCors, // 204 for a preflight; fields for every later reply
    checkMethod: target.createMethodStep(routes), // 501 404 405, 204 for OPTIONS
  }
  // The order goes on, with the steps that the route and the method of a request need.
  const resourceSteps = createResourceSteps({
    authenticate: { step: access.authenticate }, // 401
    refuseCrossSite: { step: access.checkCrossSite, when: isUnsafe }, // 403
    seeHidden: { step: seeHidden, when: hasHiddenOrRenditions },
    checkParent: { step: target.checkParent, when: isBelowParent }, // 404
    applyScope: { step: applyScope, when: dependsOnScope }, // 403
    checkAuthorization: { step: checkAuthorization, when: isAuthorized }, // 403
    checkContent: { step: checkContent, when: takesContent }, // 415 413 400
    checkRepeated: { step: checkRepeated, when: takesKeys }, // 400 422, or the first answer once more
    negotiate: { step: negotiate, when: canRefuseType }, // 406 by the definition
    loadCurrent: { step: loadCurrent }, // 404 410, 414 for a long name, 415 for a patch of what is not JSON
    negotiateStored: { step: negotiateStored, when: negotiatesStored }, // 406 by what is stored
    evaluateConditions: { step: evaluateConditions }, // 428 412 304
    selectContent: { step: selectContent, when: isRead }, // 416
    perform: { step: perform }, // 414 for a long path, 100, then 400 408 413 422, then 409 412; 200 201 202 204 206
  })

  const inOrder = sequence(requestSteps, resourceSteps)
  const decide = records === undefined ? inOrder : orFirstAnswer(inOrder)
  const activity = createActivity()
  const handler = createHandler<ResourceExchange>({
    run(exchange) {
      // Not before: some runtimes allow no timer where a service is constructed.
      records?.start()
      return decideInOrder(exchange, decide)
    },
    createExchange: (req, res, place) => new ResourceExchange(req, res, place, settings),
    activity,
    isWellKnown: access.isWellKnown,
    onError: settings.onError,
    formatError: settings.formatError,
    forwardErrors: settings.forwardErrors,
  })
  const isOurs = (exchange: Exchange): boolean => exchange instanceof ResourceExchange && exchange.settings === settings
  const stopExplaining = createExplainer(settings.explain, isOurs)
  operations?.start()
  const close = async (): Promise<void> => {
    await Promise.all([activity.drain(), operations?.close()])
    await afterCommits.drain()
    records?.close()
    stopExplaining()
    access.close()
  }
  const service = Object.assign(handler, {
    runOperation: (id: string) => operations?.run(id) ?? Promise.resolve(false),
    close,
    [Symbol.asyncDispose]: close,
  })
  rememberView(service, view)
  return service
}

/** The method itself; the content is read only now. */
function perform(exchange: ResourceExchange): MaybePromise<Reply> {
  const reply = exchange.action.perform(exchange)
  return wantsDigests(exchange) ? andThen(reply, (reply) => addWantedDigests(exchange, reply)) : reply
}

/** A step of the requests to a resource. */
interface ResourceStep {
  /** `undefined` where an option leaves it out. */
  readonly step: Step<ResourceExchange> | undefined
  /** Which requests take the step; for all others it would change nothing. Default: all take it. */
  readonly when?: Condition
}

/** Decided once for a route and a method, so by nothing that one request alone has. */
type Condition = (route: Route, method: Method) => boolean

const isUnsafe: Condition = (_, method) => !isSafeMethod(method)

const isBelowParent: Condition = ({ hasParent }) => hasParent

/** An outbox may write into any collection, whose scope then counts. A file has the outbox of its item. */
const dependsOnScope: Condition = ({ indexing, outbox, isFile }) =>
  indexing?.scope !== undefined || outbox !== undefined || isFile

const isAuthorized: Condition = ({ authorize }) => authorize !== undefined

/** The content of DELETE is not read, but its digest fields have to be well-formed. */
const takesContent: Condition = ({ actions }, method) => actions[method]?.content !== undefined || method === 'DELETE'

/** Other methods are idempotent. */
const takesKeys: Condition = ({ idempotency }, method) =>
  idempotency !== undefined && (method === 'POST' || method === 'PATCH')

/** `?deleted=true` needs an `authorize` that decides who may see hidden resources; renditions add Accept to Vary. */
const hasHiddenOrRenditions: Condition = ({ renditions, deletion, authorize }, method) =>
  isReadMethod(method) && (renditions.length > 0 || (deletion === 'soft' && authorize !== undefined))

/** Where the definition alone can tell that nothing is acceptable. */
const canRefuseType: Condition = ({ accept, usualType }, method) =>
  isReadMethod(method) && accept === 'strict' && usualType !== undefined

/** Where Accept selects a rendition, or refuses what is stored. */
const negotiatesStored: Condition = ({ accept, offers }, method) =>
  isReadMethod(method) && (accept === 'strict' || offers.length > 0)

const isRead: Condition = (_, method) => isReadMethod(method)

type Plan = Partial<Record<Method, Step<ResourceExchange>>>

/** Makes one step of those that the route and the method of a request need, in their order. */
function createResourceSteps(steps: Readonly<Record<string, ResourceStep>>): Step<ResourceExchange> {
  const plans = new Map<Route, Plan>()

  function plan(route: Route, method: Method): Step<ResourceExchange> {
    const needed = Object.entries(steps).filter(([, { when }]) => when === undefined || when(route, method))
    return sequence(Object.fromEntries(needed.map(([name, { step }]) => [name, step])))
  }

  return (exchange) => {
    const { route } = exchange
    // The methods that a route has: it was checked that this is one of them.
    const method = exchange.method as Method
    let own = plans.get(route)
    if (own === undefined) plans.set(route, (own = {}))
    return (own[method] ??= plan(route, method))(exchange)
  }
}

/**
 * Makes one step of several: they run in order until one replies. Control only moves forward.
 * @param named the steps by the names that traces show; those of functions are not the same in every bundle. `undefined` is
 *   left out
 * @param rest goes on where none of them replies, and notes its own steps
 */
export function sequence<E extends Exchange>(
  named: Readonly<Record<string, Step<E> | undefined>>,
  rest?: Step<E>,
): Step<E> {
  const names = Object.keys(named).filter((name) => named[name] !== undefined)
  const steps = names.map((name) => named[name]!)
  const last = rest === undefined ? steps.length - 1 : steps.length

  return function run(exchange, first = 0): MaybePromise<Reply | undefined> {
    for (let i = first; i < steps.length; i++) {
      exchange.trace?.push(names[i]!)
      const reply = steps[i]!(exchange)
      if (reply === undefined) continue
      return i < last && isPromise(reply)
        ? Promise.resolve(reply).then((reply) => reply ?? run(exchange, i + 1))
        : reply
    }
    return rest === undefined ? undefined : rest(exchange)
  }
}
