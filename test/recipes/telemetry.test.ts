import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, expect, it } from 'vitest'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { type Program, runProgram } from '../support/run-program.ts'

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number }
}

let collector: RunningHost | undefined
let program: Program | undefined
afterEach(async () => {
  await program?.stop('SIGKILL')
  await collector?.close()
})

const readAttribute = (attributes: readonly Attribute[], name: string): unknown => {
  const value = attributes.find(({ key }) => key === name)?.value
  return value?.stringValue ?? value?.intValue
}

it('examples/recipes/telemetry puts the pattern of the resource into spans and metrics as http.route', async () => {
  const received = new Map<string, string>()
  const server = createServer(async (req, res) => {
    received.set(req.url!, await text(req))
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
  })
  collector = await runServer(server)
  const folder = 'examples/recipes/telemetry'
  const env = {
    OTEL_SERVICE_NAME: 'notes',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_LOGS_EXPORTER: 'none',
  }
  const imports = ['./test/support/free-port.mjs', `./${folder}/instrumentation.mjs`]
  program = runProgram(
    `${folder}/app.mjs`,
    env,
    imports.flatMap((file) => ['--import', file]),
  )
  const [, base] = await program.waitFor(/listening on (http:\S+)/)
  const headers = { 'Content-Type': 'application/json' }
  expect((await fetch(`${base}/api/notes`, { method: 'POST', headers, body: '{}' })).status).toBe(201)
  expect((await fetch(`${base}/api/notes/1`)).status).toBe(200)
  expect((await fetch(`${base}/other`)).status).toBe(404)
  expect(await program.stop()).toBe(0)

  const traces = JSON.parse(received.get('/v1/traces')!)
  const spans = traces.resourceSpans[0].scopeSpans[0].spans as { name: string; attributes: Attribute[] }[]
  expect(spans.map(({ name, attributes }) => [name, readAttribute(attributes, 'http.route')])).toEqual([
    ['POST /api/notes', '/api/notes'],
    ['GET /api/notes/{id}', '/api/notes/{id}'],
    ['GET', undefined],
  ])
  expect(readAttribute(spans[1]!.attributes, 'http.resource.reason')).toBeDefined()

  const { resourceMetrics } = JSON.parse(received.get('/v1/metrics')!)
  const metrics = resourceMetrics[0].scopeMetrics[0].metrics as {
    name: string
    histogram: { dataPoints: { attributes: Attribute[] }[] }
  }[]
  const { histogram } = metrics.find(({ name }) => name === 'http.server.request.duration')!
  const routes = histogram.dataPoints.map(({ attributes }) => readAttribute(attributes, 'http.route'))
  expect(routes).toEqual(['/api/notes', '/api/notes/{id}', undefined])
})
