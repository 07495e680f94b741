import { createRequire } from 'node:module'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../src/adapters/fastify.ts'
import { honoMiddleware } from '../src/adapters/hono.ts'
import { koaMiddleware } from '../src/adapters/koa.ts'
import { createResourceClient } from '../src/client.ts'
import * as library from '../src/index.ts'
import { postgresStore } from '../src/stores/postgres.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'

/** The functions as a program in JavaScript sees them: they take anything. */
type Loose = (...values: unknown[]) => unknown
const loose = library as unknown as Record<keyof typeof library, Loose>
const { attach, auth, basic, bearer, bodyParse, collection, createAdapter, createResourceService, digest } = loose
const { conditional, document, hashPassword, jwt, memoryStore, methodOverride, mount, patch, preflight, range } = loose
const { singleton, verifyPassword } = loose
const koa = koaMiddleware as Loose
const fastify = fastifyPlugin as Loose
const hono = honoMiddleware as Loose
const sqlite = sqliteStore as Loose
const postgres = postgresStore as Loose

const service = createResourceService(memoryStore())
const scheme = basic({ accounts: { ada: 'lovelace' } })
const promise = Promise.resolve({})
const issuer = { jwks: 'https://a.example/keys', issuer: 'i', audience: 'a' }
const serviceWith = (options: object) => () => createResourceService(memoryStore(), options)

/** A client of `pg.native`, which cannot be loaded without the package `pg-native`. */
class Native extends pg.Client {
  static Query = createRequire(import.meta.url)('pg/lib/native/query.js')
}

/** Its members are getters of the class, which a copy would be without. */
class Routes {
  get '/a'() {
    return collection()
  }
}
class Fields {
  get pri() {
    return 'priority'
  }
}

const cases: [string, () => unknown, string | RegExp][] = [
  ["singleton({ methods: ['DELETE'] })", () => singleton({ methods: ['DELETE'] }), 'they are GET, PUT, PATCH'],
  ["collection({ methods: ['DELETE'] })", () => collection({ methods: ['DELETE'] }), 'they are GET, POST'],
  [
    "collection({ memberMethods: ['POST'] })",
    () => collection({ memberMethods: ['POST'] }),
    /memberMethods: they are GET/,
  ],
  ...(
    [
      ['collection', 'methods', () => collection({ methods: ['HEAD', 'POST'] })],
      ['collection', 'memberMethods', () => collection({ memberMethods: ['HEAD'] })],
      ['document', 'methods', () => document({ methods: ['HEAD', 'PUT'] })],
      ['singleton', 'methods', () => singleton({ methods: ['HEAD'] })],
    ] as const
  ).map(([owner, option, make]): [string, () => unknown, string] => [
    `${option} of ${owner} with HEAD alone`,
    make,
    `${owner} has HEAD in its ${option} without GET, with which it comes.`,
  ]),
  ...[{ input: { type: 'object' } }, { output: {} }, { input: {}, output: 'object' }].map(
    (jsonSchema): [string, () => unknown, string] => [
      `jsonSchema: ${JSON.stringify(jsonSchema)}`,
      () => collection({ jsonSchema }),
      'collection takes as jsonSchema: a JSON Schema, or { input, output } with both of them.',
    ],
  ),
  ...['resources of a class', 'resources of a prototype'].map((name, index): [string, () => unknown, string] => [
    name,
    serviceWith({ resources: [new Routes(), Object.create({ '/a': collection() })][index] }),
    'createResourceService takes as resources: an object of paths and definitions',
  ]),
  ['collection({ formFields }) with a getter', () => collection({ formFields: new Fields() }), 'takes as formFields'],
  ['collection({ query }) with a getter', () => collection({ query: new Fields() }), 'takes as query'],
  [
    'examples with a getter',
    () => document({ examples: new Fields() }),
    'document takes as examples: an object with members of its own',
  ],
  ['accounts with a getter', () => basic({ accounts: new Fields() }), 'basic takes as accounts: an object of names'],
  [
    'extensions of an error',
    () => Reflect.construct(library.HttpError, [400, 'ERR_A', { extensions: new Fields() }]),
    'takes as extensions',
  ],
  [
    'representations of a range of media types',
    serviceWith({ resources: { '/a': document({ representations: [{ type: 'text/*', render: () => '' }] }) } }),
    '/a offers a representation of no valid media type: "text/*".',
  ],
  ["document({ methods: ['POST'] })", () => document({ methods: ['POST'] }), 'they are GET, PUT, PATCH, DELETE'],
  [
    '{ ...collection(), scope }',
    serviceWith({ resources: { '/a': { ...(collection() as object), scope: () => ({}) } } }),
    'A definition has "scope" beside its options, where it has no effect: pass it to collection().',
  ],
  ...(
    [
      { count: true },
      { files: { a: {} } },
      { formFields: { a: 'b' } },
      { textProperty: 'a' },
      { create: 'accepted' },
    ] as const
  ).map((option): [string, () => unknown, string] => [
    `collection with ${JSON.stringify(option)} and content besides JSON`,
    () => collection({ ...option, types: ['application/json', 'text/plain'] }),
    `collection has ${Object.keys(option).join()}, which needs items of JSON`,
  ]),
  ...(
    [
      { deletion: 'soft' },
      { deleteResponse: 'tag' },
      { retention: 5 },
      { postCacheControl: 'max-age=60' },
      { maxSize: 5 },
      { types: ['text/plain'] },
    ] as const
  ).map((option): [string, () => unknown, string] => [
    `singleton(${JSON.stringify(option)})`,
    () => singleton(option),
    `singleton has no option "${Object.keys(option).join()}".`,
  ]),
  [
    'document({ postCacheControl })',
    () => document({ postCacheControl: 'max-age=60' }),
    'document has no option "postCacheControl".',
  ],
  ...[document, collection].flatMap((define) => {
    const owner = define === document ? 'document' : 'collection'
    const files = { types: ['text/plain', 'image/*'] }
    return [
      [{ ...files, schema: { '~standard': { validate() {} } } }, 'schema, which is about JSON'],
      [{ ...files, jsonAsMergePatch: true }, 'jsonAsMergePatch, which is about JSON'],
      [{ ...files, beforeWrite() {} }, 'a beforeWrite, which changes JSON'],
      [{ types: ['application/json'], maxSize: 5 }, 'maxSize, which is about content that is not JSON'],
      [{ types: ['*/*+json'], allowInline: ['text/html'] }, 'allowInline, which is about content that is not JSON'],
    ].map(([options, text]): [string, () => unknown, string] => [
      `${owner} with ${String(text)}, and types ${JSON.stringify((options as typeof files).types)}`,
      () => define(options),
      `${owner} has ${String(text)}`,
    ])
  }),
  ...(
    [
      ['document', () => document({ types: ['text/plain'], methods: ['PATCH'] })],
      ['collection', () => collection({ types: ['text/plain'], memberMethods: ['GET', 'PATCH'] })],
    ] as const
  ).map(([owner, make]): [string, () => unknown, string] => [
    `${owner} with PATCH, and types without JSON`,
    make,
    `${owner} has PATCH, which is about JSON: none of its types is a JSON type.`,
  ]),
  ['collection({ maxSize: 5 })', () => collection({ maxSize: 5 }), 'content that is not JSON: it takes JSON alone.'],
  [
    "document({ types: ['image/*'], idempotency })",
    () => document({ types: ['image/*'], idempotency: 'optional' }),
    'document has idempotency, which is about PATCH: none of its types is a JSON type.',
  ],
  [
    "collection({ deletion: 'queued', deleteResponse })",
    () => collection({ deletion: 'queued', deleteResponse: 'tag' }),
    'collection answers a queued DELETE with 202 and a monitor: deleteResponse has no effect there.',
  ],
  ...[{ putResponse: 'representation' }, { clientIds: true }].map((option): [string, () => unknown, string] => [
    `collection({ create: 'accepted' }) with ${JSON.stringify(option)}`,
    () => collection({ create: 'accepted', ...option }),
    `collection has ${Object.keys(option).join()}, which is about PUT: accepted items have no PUT.`,
  ]),
  [
    "collection({ create: 'accepted', postCacheControl })",
    () => collection({ create: 'accepted', postCacheControl: 'max-age=60' }),
    'postCacheControl has no effect there.',
  ],
  [
    'collection({ textProperty }) with a required file',
    () => collection({ textProperty: 'text', files: { photo: { required: true } } }),
    'collection has a file that is required, so POST takes forms alone: textProperty has no effect there.',
  ],
  [
    'collection({ pageSize: 20 })',
    () => collection({ pageSize: 20 }),
    '{ default: 20, max: 100 }; it is the number 20',
  ],
  [
    'a file that is described by text',
    () => collection({ files: { a: { describe: 'x' } } }),
    'files takes as describe: a function',
  ],
  ['koaMiddleware()', () => koa(), /takes a service or a standalone middleware, .* not undefined/],
  ['koaMiddleware(promise)', () => koa(promise), 'not a promise, which has to be awaited first'],
  [
    "koaMiddleware('/api', service)",
    () => koa('/api', service),
    /takes a service or a standalone middleware, .* not text/,
  ],
  ["koaMiddleware(service, '/api')", () => koa(service, '/api'), "koaMiddleware(service, { prefix: '/api' })"],
  ["honoMiddleware(service, '/api')", () => hono(service, '/api'), "honoMiddleware(service, { prefix: '/api' })"],
  ['honoMiddleware()', () => hono(), /takes a service or a standalone middleware, .* not undefined/],
  ['fastifyPlugin()', () => fastify(), /takes a service or a standalone middleware, .* not undefined/],
  [
    'fastifyPlugin(service, { prefix })',
    () => fastify(service, { prefix: '/api' }),
    'app.register(fastifyPlugin(service), {',
  ],
  ['attach(app)', () => attach(() => {}, service), 'attach takes a server'],
  ['attach(service, server)', () => attach(service, {}), 'attach takes the server first'],
  ["mount(service, '/api')", () => mount(service, '/api'), "mount takes the prefix first: mount('/api', service)"],
  ['createResourceService(memoryStore)', () => createResourceService(memoryStore), 'call it: memoryStore()'],
  ['createResourceService(Store)', () => createResourceService(class Store {}), 'call it: new Store()'],
  ['createResourceService(() => store)', () => createResourceService(() => memoryStore()), /not a function\. A store/],
  ['createResourceService(promise)', () => createResourceService(promise), 'not a promise'],
  ['createResourceService({ resources })', () => createResourceService({ resources: {} }), 'takes a store first'],
  [
    'collection uncalled',
    serviceWith({ resources: { '/a': collection } }),
    'a function at "/a": call it, as in collection()',
  ],
  [
    'resources: an object without a kind',
    serviceWith({ resources: { '/a': collection(), '/users': {} } }),
    'createResourceService has an object at "/users": a definition is made by a call, as in collection().',
  ],
  [
    'openapi: true',
    serviceWith({ openapi: true }),
    "takes as openapi: a path such as '/openapi.json', or { path, info",
  ],
  ['trustProxy: true', serviceWith({ trustProxy: true }), 'or a function; it is true.'],
  ['deletion: a word that is not one of them', () => collection({ deletion: 'delete' }), '\'queued\'; it is "delete".'],
  ["methods: ['get']", () => collection({ methods: ['GET', 'get'] }), '; it is a list with "get".'],
  ['requireAuth: a word', () => collection({ requireAuth: 'write' }), 'or a function; it is "write".'],
  [
    'a definition at the path of the monitors',
    serviceWith({ resources: { '/operations': collection({ create: 'accepted' }) } }),
    /"\/operations\/\{id\}" are for the same paths: .* "operations" and "openapi" add paths of their own\.$/,
  ],
  // JavaScript names such a function after its property.
  ['a function of no call', serviceWith({ resources: { '/a': () => ({}) } }), 'call it, as in collection().'],
  ['a pattern with *', serviceWith({ resources: { '/files/*': document() } }), '"*". Write {path...}.'],
  ['mount with {braces}', () => mount('/t/{tenant}', service), "such as '/api' or '/t/:tenant'"],
  [
    'an account with a promise',
    () => basic({ accounts: { ada: hashPassword('lovelace') } }),
    'The account "ada" takes a password as text, not a promise, which has to be awaited first.',
  ],
  ...[
    '$2b$10$N9qo8uLOickgx2ZMRZoMye',
    '$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA',
    '{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=',
    '{SSHA}DkMTwBl+a/3DQTxCYEApdUtNXGgdUac3',
    '{MD5}X03MO1qnZdYdgyfeuILPmQ==',
    '$apr1$r31abcde$HqJZimcKQFAMYayBlzkMT/',
    '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjlO',
    '$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o',
    '$scrypt$ln=15',
    '$pbkdf2-sha256$29000$N2YMIWQsBWBMae09x1jrPQ$1t8iyB2A',
    'pbkdf2_sha256$600000$salt$aGFzaA==',
    '{ssha}DkMTwBl+a/3DQTxCYEApdUtNXGgdUac3',
    '{BLF-CRYPT}$2y$05$bvIG6Nmid91Mu9RcmmWZfO',
  ].map((hash): (typeof cases)[number] => [
    `an account with ${hash}`,
    () => basic({ accounts: { ada: hash } }),
    /^The account "ada" has a hash that hashPassword did not make: compare such hashes in "verify"\.$/,
  ]),
  [
    'an account of digest with a hash of bcrypt',
    () => digest({ accounts: { ada: '$2b$10$N9qo8uLOickgx2ZMRZoMye' } }),
    'The account "ada" has a hash of another kind: Digest needs hashDigestSecret.',
  ],
  [
    'two schemes of one name',
    () => auth({ schemes: [scheme, basic({ accounts: { ada: 'x' } })] }),
    'auth has two schemes of the name Basic',
  ],
  ['bearer(options)', () => bearer({ jwks: 'https://a.example' }), 'jwt(...) or a function, not an object.'],
  [
    'keys: text',
    () => jwt({ keys: 'secret', issuer: 'i', audience: 'a', algorithms: ['HS256'] }),
    /not text: Buffer\.from\(secret\) gives the bytes\.$/,
  ],
  [
    'keys: { secret }',
    () => jwt({ keys: { secret: 's'.repeat(32) }, issuer: 'i', audience: 'a', algorithms: ['HS256'] }),
    /^"keys" takes JWKs, a JWK Set, KeyObjects, CryptoKeys, or the bytes of an HMAC secret, not an object\.$/,
  ],
  [
    'keys: a CryptoKey that signs',
    () => jwt({ keys: { algorithm: { name: 'HMAC' }, usages: ['sign'] }, issuer: 'i', audience: 'a' }),
    '"keys" has a CryptoKey without the usage "verify".',
  ],
  ["conditional({ entityTag: '' })", () => conditional({ entityTag: '' }), '() => ({ entityTag }), not an object.'],
  ["range('film.mp4')", () => range('film.mp4'), 'such as () => openFile(path, { contentType }), not text.'],
  [
    'resources: a Map',
    serviceWith({ resources: new Map([['/a', collection()]]) }),
    "such as { '/users': collection() }",
  ],
  ...['/a/../b', '/./a', '/a?b', '/a#b', '/a\\b', '/us%20ers'].map((pattern): (typeof cases)[number] => [
    `resources: ${pattern}`,
    serviceWith({ resources: { [pattern]: collection() } }),
    'has a segment that is neither plain nor a {name}',
  ]),
  [
    'resources: two names alike',
    serviceWith({ resources: { '/{a}/{a}': document() } }),
    'The pattern "/{a}/{a}" has the name {a} twice.',
  ],
  [
    'resources: the path of an item as that of a collection',
    serviceWith({ resources: { '/users/{id}': collection() } }),
    'The pattern "/users/{id}/{id}" has the name {id} twice: a collection adds /{id} for its items.',
  ],
  [
    'resources: a name as in Express',
    serviceWith({ resources: { '/docs/:name': document() } }),
    'has a segment that is neither plain nor a {name}: ":name". Write {name}.',
  ],
  ['collection({ methods: [] })', () => collection({ methods: [] }), 'a list that is not empty, each member one of'],
  ...['/a/../b', '/.', '/a\\b', '/ä', '/a%zz'].map((prefix): (typeof cases)[number] => [
    `mount(${prefix})`,
    () => mount(prefix, service),
    'mount takes a prefix as it is sent',
  ]),
  ["operations: { path: 'jobs' }", serviceWith({ operations: { path: 'jobs' } }), 'operations takes as path: a path'],
  ["operations: { path: '/{x}' }", serviceWith({ operations: { path: '/{x}' } }), 'operations takes as path: a path'],
  [
    "document({ types: ['png'] })",
    () => document({ types: ['png'] }),
    'document takes as types: a list that is not empty, each member a',
  ],
  ['resources: a promise', serviceWith({ resources: promise }), 'it is a promise'],
  ['resources: a list', serviceWith({ resources: [collection()] }), "such as { '/users': collection() }"],
  ['options: a promise', () => createResourceService(memoryStore(), promise), 'not a promise'],
  ['resource for resources', serviceWith({ resource: {} }), 'Did you mean "resources"?'],
  ['cors: { origin }', serviceWith({ cors: { origin: '*' } }), 'Did you mean "origins"?'],
  ['auth: a scheme', serviceWith({ auth: scheme }), '{ schemes: [basic({ accounts })] }'],
  ['allowedHosts: numbers', serviceWith({ allowedHosts: [1] }), '"allowedHosts" is a list'],
  ["sqliteStore('dev.db')", () => sqlite('dev.db'), 'as in sqliteStore(new Database(file)), not text'],
  ['sqliteStore()', () => sqlite(), 'sqliteStore takes an open database'],
  ['a cacheSize of text', () => sqlite({ exec() {}, prepare() {} }, { cacheSize: '1 MB' }), 'takes as cacheSize'],
  ['postgresStore(pool)', () => postgres(new pg.Pool()), 'postgresStore({ pool })'],
  ["postgresStore({ pool: 'postgres://' })", () => postgres({ pool: 'postgres://a' }), 'new Pool() of pg; it is text'],
  ['postgresStore({ pool: Pool })', () => postgres({ pool: pg.Pool }), 'new Pool() of pg; it is the function'],
  ['postgresStore({ pool: native })', () => postgres({ pool: new pg.Pool({ Client: Native }) }), 'not pg.native.Pool'],
  ['postgresStore({ pool: client })', () => postgres({ pool: new pg.Client() }), 'new Pool() of pg; it is an object'],
  [
    'a statementTimeout of text',
    () => postgres({ pool: new pg.Pool(), statementTimeout: '5s' }),
    'takes as statementTimeout',
  ],
  ["preflight({ methods: [''] })", () => preflight({ origins: '*', methods: [''] }), 'preflight takes as methods'],
  ['cors: {}', serviceWith({ cors: {} }), "cors takes as origins: '*', an origin, a list of origins, or a function"],
  ['origin for origins', () => preflight({ origin: '*' }), 'Did you mean "origins"?'],
  [
    "preflight({ credentials: 'yes' })",
    () => preflight({ origins: [], credentials: 'yes' }),
    'true or false; it is text',
  ],
  ['auth(scheme)', () => auth(scheme), '{ schemes: [basic({ accounts })] }'],
  ['auth([scheme])', () => auth([scheme]), '{ schemes: [basic({ accounts })] }'],
  ['a scheme uncalled', () => auth({ schemes: [basic] }), 'not the function basic. Call it: basic(options)'],
  ['basic({ verify: true })', () => basic({ verify: true }), 'basic takes as verify: a function; it is true'],
  ['accounts: a Map', () => basic({ accounts: new Map([['a', 'b']]) }), 'an object of names and secrets'],
  ['accounts: a promise', () => digest({ accounts: promise }), 'it is a promise'],
  ['basic({ throttle: true })', () => basic({ accounts: { a: 'b' }, throttle: true }), 'basic takes as throttle'],
  ['bearer(verify, { scope: text })', () => bearer(() => true, { scope: 'read' }), 'bearer takes as scope: a function'],
  ['a jwks without a scheme', () => jwt({ ...issuer, jwks: 'a' }), 'jwt takes as jwks: the https address'],
  ['jwks: a promise', () => jwt({ ...issuer, jwks: promise }), 'jwt takes as jwks: the https address'],
  ['isRevoked: text', () => jwt({ ...issuer, isRevoked: 'x' }), 'jwt takes as isRevoked: a function'],
  [
    'patch(read, write)',
    () =>
      patch(
        () => {},
        () => {},
      ),
    'patch({ read, write })',
  ],
  [
    'a patch format uncalled',
    () => patch({ read() {}, write() {}, patchFormats: [library.jsonPatch] }),
    'patch takes as patchFormats',
  ],
  ["bodyParse({ accept: 'json' })", () => bodyParse({ accept: 'json' }), 'bodyParse takes as accept: a list'],
  ['methodOverride({})', () => methodOverride({}), 'methodOverride takes no options'],
  ['createAdapter()', () => createAdapter(), 'createAdapter needs name'],
  ['createAdapter(service)', () => createAdapter(service), 'createAdapter takes an object of options'],
  [
    'an HttpError with text',
    () => Reflect.construct(library.HttpError, [404, 'ERR_NOT_FOUND', 'x']),
    "{ detail: 'why' }, not text",
  ],
  [
    'details for detail',
    () => Reflect.construct(library.HttpError, [404, 'ERR_NOT_FOUND', { details: 'x' }]),
    'Did you mean "detail"?',
  ],
  ["an HttpError of '404'", () => Reflect.construct(library.HttpError, ['404', 'ERR_NOT_FOUND']), 'not text'],
  [
    'headers: text',
    () => (createResourceClient as Loose)('http://a.example', { headers: 'x' }),
    'createResourceClient takes as headers: object, function.',
  ],
]

describe('wrong arguments', () => {
  const context = { req: {}, res: {}, url: '/a' }
  it.each<[string, unknown[]]>([
    ['Koa', [context, async () => {}]],
    ['Fastify', [{ route: () => {} }, { prefix: '/a' }, () => {}]],
    ['Hono', [context, async () => {}]],
  ])('are refused in a sentence that names the adapter: a service that %s calls itself', (_, values) => {
    for (const handler of [service, mount('/a', service), mount('/b', service), auth({ schemes: [scheme] })]) {
      expect(() => (handler as Loose)(...values)).toThrow(
        new TypeError(
          'A service or a standalone middleware takes (req, res, next) of node:http. Koa needs koaMiddleware(service), ' +
            'Fastify fastifyPlugin(service), Hono honoMiddleware(service), another host createAdapter.',
        ),
      )
    }
  })

  it.each(cases)('are refused in a sentence that names the right one: %s (issue "Package")', (_, call, message) => {
    expect(call).toThrow(TypeError)
    expect(call).toThrow(message)
  })

  it('are not refused for a password that begins like a hash', () => {
    for (const password of ['$', '$5 off', '$1$', '$6$7', '$apr1', '$2']) basic({ accounts: { ada: password } })
  })

  it('are refused without the value, which may be a secret', () => {
    expect(() => basic({ accounts: 'ada:lovelace' })).toThrow(/^(?!.*lovelace)/)
    expect(() => basic({ accounts: { ada: 4711 } })).toThrow('"ada" takes a password as text, not a number.')
    expect(() => jwt({ keys: 4711, issuer: 'i', audience: 'a', algorithms: ['HS256'] })).toThrow(
      'an HMAC secret, not a number.',
    )
  })

  it('are refused by a promise where the function gives one: hashPassword(5) (issue "Package")', async () => {
    await expect(hashPassword(5)).rejects.toThrow('hashPassword takes a password as text, not a number.')
  })

  it('are refused by a promise where the arguments are in the wrong order: verifyPassword(hash, password)', async () => {
    await expect(verifyPassword(await hashPassword('lovelace'), 'lovelace')).rejects.toThrow(
      new TypeError('verifyPassword takes as hash: what hashPassword returned, not text.'),
    )
  })

  it('are not refused for a method that the methods of a definition leave out: several services may share options', () => {
    const shared = { deletion: 'soft', postCacheControl: 'max-age=60', putResponse: 'representation' }
    const items = { ...shared, methods: ['GET'], memberMethods: ['GET'], clientIds: true, jsonAsMergePatch: true }
    expect(() => collection(items)).not.toThrow()
    expect(() =>
      document({ methods: ['GET'], maxSize: 5, deleteResponse: 'tag', jsonAsMergePatch: true }),
    ).not.toThrow()
    expect(() => singleton({ methods: ['GET'], putResponse: 'none', idempotency: 'optional' })).not.toThrow()
    expect(() => collection({ maxSize: 5, files: { photo: { replaceable: true } } })).not.toThrow()
  })
})
