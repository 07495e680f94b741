// What stands in front of every host of the demo: the page for browsers, and what only the page asks for.
import { subscribe } from 'node:diagnostics_channel'
import { request } from 'node:http'
import { conditional } from 'http-resource-service/conditional'
import { parseMediaType, selectMediaType } from 'http-resource-service/protocol'
import { buildPage } from './build-page.js'

const TYPES = ['application/json', 'text/html'].map((type) => parseMediaType(type))
const HTML = 1
/** A field of this page and this server alone: a request that has it gets the reason for its response in the same field. */
const REASON = 'Demo-Reason'

/**
 * Answers `/` with the page where Accept prefers HTML. All other requests are for the host.
 * @param {import('node:http').Server} server with the listeners of the host
 * @param {readonly string[]} origins those that may use the service
 */
export function putPageInFront(server, origins) {
  const hosts = server.listeners('request')
  server.removeAllListeners('request')
  let page
  server.on('request', (req, res) => {
    const { method, headers, url } = req
    const passOn = () => {
      for (const host of hosts) host.call(server, req, res)
    }
    if (headers[REASON.toLowerCase()] !== undefined) explain(req, res)
    if (method !== 'GET' && method !== 'HEAD') return passOn()
    if (url === '/demo/preflights') return sendPreflights(req.socket, origins, res)
    if (url.split('?', 1)[0] !== '/') return passOn()
    // Two representations: caches have to know what the choice depends on.
    res.setHeader('Vary', 'Accept')
    if (selectMediaType(headers.accept, TYPES) !== HTML) return passOn()
    // Built for the first browser: programs do not wait for it.
    page ??= buildPage()
    page.then(
      (built) => sendPage(built, req, res),
      (error) => {
        page = undefined
        console.error(error)
        res.writeHead(500, { 'Content-Type': 'text/plain' }).end('The page could not be built.')
      },
    )
  })
}

/** @param {{ html: Buffer, policy: string, entityTag: string }} page */
function sendPage({ html, policy, entityTag }, req, res) {
  res.setHeader('Content-Security-Policy', policy)
  conditional(() => ({ entityTag }))(req, res, () => {
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.setHeader('Content-Length', html.length)
    res.setHeader('Referrer-Policy', 'no-referrer')
    res.setHeader('X-Content-Type-Options', 'nosniff')
    res.end(req.method === 'HEAD' ? undefined : html)
  })
}

const explained = new WeakMap()

/** Sends each response with its reason. While no page has asked, nothing is recorded. */
function explain(req, res) {
  explained.set(req, res)
  if (isListening) return
  isListening = true
  subscribe('http-resource-service:request', ({ exchange, reason }) => {
    explained.get(exchange.req)?.setHeader(REASON, reason.replace(/[^\x20-\x7e]/g, '?'))
  })
}
let isListening = false

/**
 * Sends two preflights to this server, as browsers do for pages of other origins, and answers with what was sent and
 * received. Scripts cannot: browsers keep the fields of a preflight to themselves.
 */
async function sendPreflights(socket, [origin = 'http://localhost:3000'], res) {
  const preflights = await Promise.all([origin, 'https://elsewhere.example'].map((from) => sendPreflight(socket, from)))
  const body = JSON.stringify(preflights)
  res.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(body)
}

/** To where the request came: a server that closes has no address any more. */
function sendPreflight({ localAddress: host, localPort: port }, origin) {
  const headers = {
    Origin: origin,
    'Access-Control-Request-Method': 'PATCH',
    'Access-Control-Request-Headers': 'content-type,if-match',
  }
  const sent = { method: 'OPTIONS', url: '/api/plan', headers }
  return new Promise((resolve) => {
    const preflight = request({ host, port, method: 'OPTIONS', path: sent.url, headers, timeout: 5000 }, (answer) => {
      answer.resume()
      const fields = Object.entries(answer.headers).map(([name, value]) => [name, String(value)])
      resolve({ ...sent, status: answer.statusCode, statusText: answer.statusMessage, fields })
    })
    preflight.on('timeout', () => preflight.destroy())
    preflight.on('error', () => resolve({ ...sent, status: 0, statusText: 'no answer', fields: [] }))
    preflight.end()
  })
}
