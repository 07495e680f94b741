// A program of its own: constructs everything that a Worker may construct while its module is loaded, with all that is
// forbidden there replaced by functions that write their name down. Prints the names.
import crypto from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timers from 'node:timers'

const called = []
const forbid = (owner, names) => {
  for (const name of names) {
    const original = owner[name]
    owner[name] = (...args) => {
      // The loader of modules reads files by the same functions from Node 26 on; a Worker is bundled.
      const isLoader = new Error().stack.includes('node:internal/modules/')
      if (isConstructing && !isLoader) called.push(name)
      return original.apply(owner, args)
    }
  }
}
let isConstructing = true
forbid(crypto, ['randomBytes', 'randomUUID', 'randomFill', 'randomFillSync', 'randomInt', 'scrypt', 'scryptSync'])
forbid(crypto.webcrypto, ['getRandomValues', 'randomUUID'])
forbid(globalThis, ['setTimeout', 'setInterval', 'setImmediate', 'fetch'])
forbid(timers, ['setTimeout', 'setInterval', 'setImmediate'])
forbid(net, ['connect', 'createConnection'])
syncBuiltinESMExports()
const lib = await import('http-resource-service')
const { postgresStore } = await import('http-resource-service/stores/postgres')
forbid(fs, ['openSync', 'readFileSync', 'writeFileSync', 'readFile', 'writeFile', 'open', 'mkdirSync', 'statSync'])
forbid(Math, ['random'])
syncBuiltinESMExports()

const pool = { connect: () => called.push('connect'), on() {} }
const accounts = { ada: 'lovelace' }
for (const store of [lib.memoryStore(), postgresStore({ pool })]) {
  lib.createResourceService(store, {
    resources: {
      '/users': lib.collection({ deletion: 'soft' }),
      '/notes': lib.collection({ ids: 'uuid' }),
      '/orders': lib.collection({
        ...{ idempotency: 'required', query: { total: 'number' }, count: true },
        scope: ({ principal }) => ({ owner: principal?.id }),
        beforeWrite: ({ value }) => value,
        outbox: () => [],
        afterCommit: () => {},
      }),
      '/orders/{order}/lines': lib.collection({ parent: true, clientIds: true }),
      '/tree/{path...}': lib.document({ idempotency: 'optional' }),
      '/page': lib.document(),
      '/config': lib.singleton(),
    },
    cors: { origins: '*' },
    auth: {
      schemes: [
        lib.basic({ accounts, throttle: lib.attemptLimit() }),
        lib.digest({ accounts }),
        lib.bearer(lib.jwt({ jwks: 'https://issuer.example/keys', issuer: 'https://issuer.example', audience: 'a' })),
      ],
      requireAuth: 'writes',
    },
  })
}
isConstructing = false
console.log(JSON.stringify(called))
