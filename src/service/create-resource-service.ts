import { checkAuthorization } from '../actions/authorization.ts'
import { checkRepeated, orFirstAnswer } from '../actions/keyed-request.ts'
import { options as describeOptions } from '../actions/options.ts'
import { checkParent } from '../actions/parent.ts'
import { ResourceExchange } from '../actions/resource-exchange.ts'
import { addWantedDigests } from '../actions/response-digests.ts'
import { applyScope } from '../actions/scope.ts'
import { createActivity } from '../core/activity.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Handler } from '../core/handler.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { createHandler } from '../core/node-handler.ts'
import { decideInOrder } from '../core/pipeline.ts'
import type { Reply } from '../core/reply.ts'
import { wantsDigests } from '../core/reply-digests.ts'
import { rememberView } from '../openapi/inputs.ts'
import type { ResourceStore } from '../stores/types.ts'
import { createAccess } from './access.ts'
import { compileService } from './compile-service.ts'
import { checkContent } from './content-steps.ts'
import { createExplainer } from './explain.ts'
import {
  canRefuseType,
  createResourceSteps,
  dependsOnScope,
  hasHiddenOrRenditions,
  isAuthorized,
  isBelowParent,
  isRead,
  isUnsafe,
  mayHaveContent,
  negotiatesStored,
  sequence,
  takesKeys,
} from './resource-steps.ts'
import {
  evaluateConditions,
  loadCurrent,
  negotiate,
  negotiateStored,
  seeHidden,
  selectContent,
} from './selection-steps.ts'
import { readServiceOptions, type ServiceOptions } from './service-options.ts'
import * as target from './target-steps.ts'

/** A service: a handler for any host, with what belongs to its life. */
export interface ResourceService extends Handler {
  /** Does one piece of accepted work, for a queue of the user's own. @returns whether it was there to be done */
  runOperation(id: string): Promise<boolean>
  /**
   * Drains the service: takes no more accepted work, and makes every further answer the last on its connection.
   * @returns fulfilled when the requests and the work that are under way are done, and the store is needed no more. It
   *   waits at most 5 seconds for work, and for requests whose clients have left. New connections are the server's to
   *   refuse: call its `close` first
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
 * @throws TypeError for options that do not exist or contradict each other
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
    checkTargetLength: target.createLengthStep(settings.maxTargetLength), // 414
    checkTarget: target.checkTarget, // 400 431
    checkScheme: target.createSchemeStep(access.isSecure), // 421
    checkHost: access.checkHost, // 421
    requireHttps: access.checkTransport, // 403
    answerServerOptions: target.createServerOptionsStep(routes), // 204 for OPTIONS *
    overrideMethod: access.overrideMethod, // 400
    applyCors: access.applyCors, // 204 for a preflight; fields for every later reply
    checkMethodKnown: target.createMethodStep(routes), // 501 404
    answerOptions, // 204
    checkMethodAllowed: target.checkMethodAllowed, // 405
  }
  // The order goes on, with the steps that the route and the method of a request need.
  const resourceSteps = createResourceSteps({
    authenticate: { step: access.authenticate }, // 401
    refuseCrossSite: { step: access.checkCrossSite, when: isUnsafe }, // 403
    seeHidden: { step: seeHidden, when: hasHiddenOrRenditions },
    checkParent: { step: checkParent, when: isBelowParent }, // 404
    applyScope: { step: applyScope, when: dependsOnScope }, // 403
    checkAuthorization: { step: checkAuthorization, when: isAuthorized }, // 403
    checkContent: { step: checkContent, when: mayHaveContent }, // 415 413 400
    checkRepeated: { step: checkRepeated, when: takesKeys }, // 400 422, or the first answer once more
    negotiate: { step: negotiate, when: canRefuseType }, // 406 by the definition
    loadCurrent: { step: loadCurrent }, // 404 410, 415 for a patch of what is not JSON
    negotiateStored: { step: negotiateStored, when: negotiatesStored }, // 406 by what is stored
    evaluateConditions: { step: evaluateConditions }, // 428 412 304
    selectContent: { step: selectContent, when: isRead }, // 416
    perform: { step: perform }, // 100, then 400 408 413 422, then 409 412; 200 201 202 204 206
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

/** OPTIONS that is not a preflight: a query of capabilities. */
function answerOptions(exchange: ResourceExchange): Reply | undefined {
  return exchange.method === 'OPTIONS' ? describeOptions(exchange) : undefined
}

/** The method itself; the content is read only now. */
function perform(exchange: ResourceExchange): MaybePromise<Reply> {
  const reply = exchange.action.perform(exchange)
  return wantsDigests(exchange) ? andThen(reply, (reply) => addWantedDigests(exchange, reply)) : reply
}
