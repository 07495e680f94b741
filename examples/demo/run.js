// What every demo server shares: settings from the environment, the store, and a clean start and stop.
import { createHmac, randomBytes } from 'node:crypto'
import { memoryStore } from 'http-resource-service'
import { putPageInFront } from './front.js'
import { createDemo, seed } from './service.js'

/**
 * Runs the demo on one host.
 * @param {(service: import('http-resource-service').ResourceService) => import('node:http').Server | Promise<import('node:http').Server>} createServer
 */
export async function runDemo(createServer) {
  const { env } = process
  // An empty variable counts as none: an empty secret would be a key that everybody knows.
  const settings = {
    secret: env.DEMO_SECRET || randomBytes(32).toString('base64url'),
    user: env.DEMO_USER || 'demo',
    password: env.DEMO_PASSWORD || randomBytes(9).toString('base64url'),
    origins: (env.CORS_ORIGINS || 'http://localhost:3000').split(',').map((origin) => origin.trim()),
  }
  const { store, close: closeStore } = await openStore(env.STORE || 'memory')
  await seed(store)
  const service = createDemo(store, settings)
  const server = await createServer(service)
  putPageInFront(server, settings.origins)
  const host = env.HOST || '127.0.0.1'
  const port = Number(env.PORT || 8080)

  server.listen(port, host, () => {
    if (!env.DEMO_PASSWORD) console.log(`user ${settings.user}, password ${settings.password}`)
    if (!env.DEMO_SECRET) console.log(`token of an admin, for a day: ${signToken(settings.secret)}`)
    const base = formatBase(host, server.address().port)
    console.log(`listening on ${base}`)
    console.log(['', 'Try it:', ...firstLines(base), '', `Or open ${base}/ in a browser.`].join('\n'))
  })

  const stop = async () => {
    setTimeout(() => server.closeAllConnections(), 3000).unref()
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeIdleConnections()
    await Promise.all([closed, service.close()])
    await store.close?.()
    await closeStore()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

function formatBase(host, port) {
  // A server that listens on every address is shown with this one.
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** What to type first. Every host serves the demo below /api, and at the root. */
function firstLines(base) {
  const users = `${base}/api/users`
  return [
    `curl -i ${users} -H 'Content-Type: application/json' -d '{"name":"Ada","email":"ada@example.org"}'`,
    `curl -i ${users}/1`,
    `curl -i -X PATCH ${users}/1 -H 'Content-Type: application/merge-patch+json' -d '{"role":"admin"}'`,
  ]
}

/** @param {string} text `memory`, `sqlite:FILE` or a `postgres://` URL */
async function openStore(text) {
  if (text === 'memory') return { store: memoryStore(), close() {} }
  if (text.startsWith('sqlite:')) {
    const [{ sqliteStore }, { default: Database }] = await Promise.all([
      import('http-resource-service/stores/sqlite'),
      import('libsql'),
    ])
    const database = new Database(text.slice('sqlite:'.length))
    return { store: sqliteStore(database), close: () => database.close() }
  }
  if (/^postgres(?:ql)?:\/\//.test(text)) {
    const [{ postgresStore }, { default: pg }] = await Promise.all([
      import('http-resource-service/stores/postgres'),
      import('pg'),
    ])
    const pool = new pg.Pool({ connectionString: text })
    return { store: postgresStore({ pool }), close: () => pool.end() }
  }
  throw new Error(`STORE is memory, sqlite:FILE or a postgres:// URL, not "${text}".`)
}

function signToken(secret) {
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: 'demo', aud: 'demo', sub: 'admin', role: 'admin', iat: now, exp: now + 86400 }
  const input = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}
