// This library in the benchmark: see README.md. dist/ must be built.
// BENCH_STORE=memory, sqlite or postgres://...; BENCH_OPTIONS=all switches on every option there is. BENCH_FILES_IN says
// where the large file is: folder (served by examples/file-store.js), store, or contents (SQLite with fileContents).
import { createServer } from 'node:http'
import { attach, bearer, collection, createResourceService, document, jwt } from '../dist/index.js'
import { composeStores, openItemStore } from './stores.mjs'

export default async function createBench(ctx) {
  const kind = process.env.BENCH_STORE ?? 'memory'
  const filesIn = process.env.BENCH_FILES_IN ?? 'folder'
  const items = await openItemStore(kind, { hasContents: filesIn === 'contents' })
  const store = composeStores(items, { ...ctx, keepsFiles: filesIn === 'folder' })
  const json = (value) => ({ contentType: 'application/json', body: JSON.stringify(value) })

  async function seed() {
    for (let id = 1; id <= ctx.users.count; id++) {
      const written = items.store.write(`/users/${id}`, json(ctx.users.data(id)), { expect: 'any' })
      if (typeof written.then === 'function') await written
    }
    for (let n = 0; n < ctx.docs.count; n++) {
      await items.store.write(`/docs/${n}`, json(ctx.docs.data(n)), { expect: 'any' })
    }
    if (filesIn !== 'folder') {
      const { createReadStream } = await import('node:fs')
      const body = createReadStream(`${ctx.filesDir}/big.bin`)
      await items.store.write('/files/big.bin', { contentType: 'application/octet-stream', body }, { expect: 'any' })
    }
  }
  await seed()
  process.on('SIGUSR2', async () => {
    if (kind !== 'memory') return
    Object.assign(items, await openItemStore(kind))
    await seed()
    globalThis.gc?.()
  })

  const { HS256, EdDSA, ES256 } = ctx.keys
  const tokens = jwt({
    keys: [Buffer.from(HS256.secret, 'base64url'), EdDSA.public, ES256.public],
    algorithms: ['HS256', 'EdDSA', 'ES256'],
    issuer: 'https://issuer.example.test',
    audience: 'bench',
    ...(process.env.BENCH_CACHE_SIZE === undefined ? {} : { cacheSize: Number(process.env.BENCH_CACHE_SIZE) }),
  })
  const secured = document({ types: ['application/json'], requireAuth: 'all' })
  const service = createResourceService(store, {
    resources: {
      '/users': collection(),
      '/docs/{name}': document({ types: ['application/json'], putResponse: 'representation' }),
      '/files/{name}': document({ methods: ['GET'] }),
      '/uploads': collection({ create: 'accepted', files: { file: {} } }),
      // The harness expects a name and a size, no media type.
      '/forms': collection({ files: { file: { describe: ({ name, size }) => ({ name, size }) } } }),
      '/hs256/users/{id}': secured,
      '/eddsa/users/{id}': secured,
      '/es256/users/{id}': secured,
    },
    cors: { origins: [ctx.cors.origin], allowedHeaders: ctx.cors.headers, maxAge: ctx.cors.maxAge },
    auth: { schemes: [bearer(tokens)], requireAuth: () => false },
    ...(process.env.BENCH_OPTIONS === 'all' ? everyOption() : {}),
  })
  return mountOn(ctx.mount, service)
}

function everyOption() {
  return {
    https: 'required',
    trustProxy: ['loopback'],
    allowedHosts: ['127.0.0.1', 'localhost'],
    methodOverride: true,
    contentCodings: ['gzip', 'br'],
    onError: () => {},
  }
}

async function mountOn(mount, service) {
  if (mount === 'express') {
    const { default: express } = await import('express')
    const app = express()
    app.disable('x-powered-by')
    app.use(service)
    const server = createServer(app)
    if (process.env.BENCH_ATTACH === 'direct') attach(server, service, { direct: '' })
    return server
  }
  if (mount === 'koa') {
    const [{ default: Koa }, { koaMiddleware }] = await Promise.all([import('koa'), import('../dist/koa.js')])
    const app = new Koa()
    app.use(koaMiddleware(service))
    return createServer(app.callback())
  }
  return createServer(service)
}
