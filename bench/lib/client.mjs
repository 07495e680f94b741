// A small HTTP client for the checks (never for timing).
import http from 'node:http'

export function call(port, { method = 'GET', path = '/', headers = {}, body } = {}) {
  return new Promise((res, rej) => {
    const h = { ...headers }
    if (body !== undefined) h['Content-Length'] = Buffer.byteLength(body)
    const req = http.request(
      { host: '127.0.0.1', port, method, path, headers: h, agent: false, timeout: 20000 },
      (r) => {
        const parts = []
        r.on('data', (d) => parts.push(d))
        r.on('end', () => res({ status: r.statusCode, headers: r.headers, body: Buffer.concat(parts) }))
      },
    )
    req.on('timeout', () => req.destroy(new Error('timeout')))
    req.on('error', rej)
    req.end(body)
  })
}
