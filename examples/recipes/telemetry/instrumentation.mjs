// examples/recipes/telemetry/instrumentation.mjs
import { subscribe } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import { context, trace } from '@opentelemetry/api'
import { getRPCMetadata } from '@opentelemetry/core'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { NodeSDK } from '@opentelemetry/sdk-node'

// OTEL_SERVICE_NAME, OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of OpenTelemetry configure it.
const sdk = new NodeSDK({ instrumentations: [new HttpInstrumentation()] })
sdk.start()
createRequire(import.meta.url)('node:http') // the instrumentation sees what is required, not what is imported

const PREFIX = '/api' // as in app.mjs; exchange.mount has what the client sent

subscribe('http-resource-service:request', (message) => {
  const { route, reason } = /** @type {import('http-resource-service').RequestEvent} */ (message)
  trace.getActiveSpan()?.setAttribute('http.resource.reason', reason)
  // The instrumentation makes http.route of it: in the span, in its name, and in http.server.request.duration.
  const metadata = getRPCMetadata(context.active())
  if (metadata !== undefined && route !== undefined) metadata.route = PREFIX + route
})
subscribe('http-resource-service:failure', (message) => {
  const { error } = /** @type {import('http-resource-service').FailureEvent} */ (message)
  if (error !== undefined) trace.getActiveSpan()?.recordException(/** @type {Error} */ (error))
})

// Sends what has not been sent, once the last request has ended.
process.once('beforeExit', () => sdk.shutdown())
