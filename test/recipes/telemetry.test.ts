import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
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

/** Waits until the server takes no connection any more. */
async function waitForClose(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (!isOpen) return
  }
}

it('examples/recipes/telemetry puts the pattern of the resource into spans and metrics as http.route', async () => {
  const received = new Map<string, string>()
  const spans: { name: string; attributes: Attribute[] }[] = []
  const server = createServer(async (req, res) => {
    const body = await text(req)
    received.set(req.url!, body)
    if (req.url === '/v1/traces') spans.push(...JSON.parse(body).resourceSpans[0].scopeSpans[0].spans)
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
  // A creation that is under way at the signal, and ends after it.
  const port = Number(new URL(base!).port)
  const creation = request({
    port,
    method: 'POST',
    path: '/api/notes',
    headers: { ...headers, Expect: '100-continue' },
  })
  creation.flushHeaders()
  await once(creation, 'continue')
  const stopped = program.stop()
  await waitForClose(port)
  creation.end('{}')
  const [response] = (await once(creation, 'response')) as [IncomingMessage]
  response.resume()
  expect(response.statusCode).toBe(201)
  expect(await stopped).toBe(0)

  expect(spans.map(({ name, attributes }) => [name, readAttribute(attributes, 'http.route')])).toEqual([
    ['POST /api/notes', '/api/notes'],
    ['GET /api/notes/{id}', '/api/notes/{id}'],
    ['GET', undefined],
    ['POST /api/notes', '/api/notes'],
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
