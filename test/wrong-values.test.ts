import { createServer } from 'node:http'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createResourceClient } from '../src/client.ts'
import { s3Contents } from '../src/contents/s3.ts'
import * as library from '../src/index.ts'
import { postgresStore } from '../src/stores/postgres.ts'
import { testContents, testStore } from '../src/testing.ts'

/** The functions as a program in JavaScript sees them: they take anything. */
type Loose = (...values: unknown[]) => unknown
const loose = library as unknown as Record<keyof typeof library, Loose>
const { attach, basic, collection, createResourceService, digest, jwt, memoryStore, mount } = loose
const { bodyParse, document, jsonPatch, patch, protectedResourceMetadata, singleton } = loose

const accounts = { ada: 'lovelace' }
const issuer = { issuer: 'https://issuer.example', audience: 'a' }
const secret = { keys: new Uint8Array(32), algorithms: ['HS256'] }
const bucket = { endpoint: 'https://s3.example', region: 'r', bucket: 'b' }
const runner = { describe() {}, it() {} }

const values = () => ({ owner: 'ada' })
const service = (options: unknown) => () => createResourceService(memoryStore(), options)
const client = (options: unknown) => () => (createResourceClient as Loose)('http://a.example', options)
const postgres = (options: object) => () => (postgresStore as Loose)({ pool: new pg.Pool(), ...options })
const credentials = (options: object) => () => (s3Contents as Loose)({ ...bucket, credentials: options })
const kit = (options: unknown) => () => (testStore as Loose)('a', () => library.memoryStore(), options)
const contentsKit = (options: unknown) => () => (testContents as Loose)('a', () => ({}), options)
const error = (options: unknown) => () => Reflect.construct(library.HttpError, [400, 'ERR_ODD', options])
const attached = (direct: unknown) => () => attach(createServer(), service({})(), { direct })

const TWO_FUNCTIONS = 'takes as throttle: an object with check (function), report (function)'
const PREFIX = 'tablePrefix: 1 to 40 lower-case letters, digits and underscores, the first not a digit'

const cases: [string, () => unknown, string][] = [
  ['auth: null', service({ auth: null }), 'auth takes an object of options, not null.'],
  ['cors: null', service({ cors: null }), 'cors takes an object of options, not null.'],
  ['auth.schemes: [null]', service({ auth: { schemes: [null] } }), 'auth: schemes[0] must be an AuthScheme'],
  ['resources: a Set', service({ resources: new Set() }), "such as { '/users': collection() }; it is a Set."],
  [
    'limits: a Date',
    service({ limits: new Date() }),
    'createResourceService limits takes an object of options, not a Date.',
  ],
  ['collection(a Set)', () => collection(new Set()), 'collection takes an object of options, not a Set.'],
  ['files: a Map', () => collection({ files: new Map() }), 'collection takes as files: '],
  // Each would match no content: 415 for all of it, or no effect.
  ...[
    { types: ['Text/Plain'] },
    { types: ['a/b; c=d'] },
    { allowInline: ['Text/HTML'] },
    { allowInline: ['a/b;c=d'] },
  ].map((options): (typeof cases)[number] => [
    JSON.stringify(options),
    () => document(options),
    "each member a media range such as 'image/*', in lower case and without parameters",
  ]),
  ...['Application/X-Patch', 'application/x-patch; v=1', ''].map((mediaType): (typeof cases)[number] => [
    `a patch format of ${JSON.stringify(mediaType)}`,
    service({ patchFormats: [{ mediaType, parse() {} }] }),
    'the mediaType in lower case and without parameters',
  ]),
  // Location could not be sent: the answer to each POST would be 500, and the item there.
  ['mountPath: beyond ASCII', service({ mountPath: '/日本' }), 'as it is sent, with escapes'],
  [
    'a singleton at a pattern with a name',
    service({ resources: { '/users/{user}/settings': singleton() } }),
    '/users/{user}/settings cannot be a singleton, which is one resource for all values: use document().',
  ],
  ['patchFormats: []', service({ patchFormats: [] }), 'takes as patchFormats: a list that is not empty'],
  ['basic, throttle: {}', () => basic({ accounts, throttle: {} }), `basic ${TWO_FUNCTIONS}`],
  ['digest, throttle: {}', () => digest({ accounts, throttle: {} }), `digest ${TWO_FUNCTIONS}`],
  ['shared: null', () => digest({ accounts, shared: null }), 'digest takes as shared: '],
  [
    'shared: without claim',
    () => digest({ accounts, shared: { key: new Uint8Array(32) } }),
    'digest takes as shared: ',
  ],
  [
    'jwksTimes: 5',
    () => jwt({ ...issuer, ...secret, jwksTimes: 5 }),
    'jwksTimes takes an object of options, not the number 5.',
  ],
  [
    'jwksTimes without jwks',
    () => jwt({ ...issuer, ...secret, jwksTimes: { timeout: 1000 } }),
    'jwt has "jwksTimes" without "jwks".',
  ],
  ['resource: 5n', () => protectedResourceMetadata({ resource: 5n }), 'metadata takes as resource: an https URL'],
  ['mount(5n)', () => mount(5n, service({})()), "mount takes a prefix such as '/api'"],
  ["direct: 'api'", attached('api'), "attach takes as direct: a path such as '/api' or '/t/:tenant'"],
  ['direct: a function', attached(() => '/api'), "attach takes as direct: a path such as '/api' or '/t/:tenant'"],
  ...[null, ['x'], true, 5n, Symbol('x')].map((tablePrefix): (typeof cases)[number] => [
    `tablePrefix: ${typeof tablePrefix}`,
    postgres({ tablePrefix }),
    `postgresStore takes as ${PREFIX}`,
  ]),
  [
    'tablePrefix: 41 letters',
    postgres({ tablePrefix: 'a'.repeat(41) }),
    `postgresStore takes as ${PREFIX}; it is text.`,
  ],
  ['tablePrefix: upper case', postgres({ tablePrefix: 'My_' }), `postgresStore takes as ${PREFIX}; it is text.`],
  [
    'sessionToken: 5',
    credentials({ accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 5 }),
    's3Contents takes as credentials: { accessKeyId, secretAccessKey, sessionToken }, or a function.',
  ],
  ['accessKeyId: 5', credentials({ accessKeyId: 5, secretAccessKey: 'b' }), 's3Contents takes as credentials: '],
  ['kit, content: 5', kit({ ...runner, content: 5 }), 'testStore takes as content: a function; it is the number 5.'],
  ["kit, collection: 'things'", kit({ ...runner, collection: 'things' }), 'testStore takes as collection: a path'],
  ["kit, hiding: 'no'", kit({ ...runner, hiding: 'no' }), 'testStore takes as hiding: true or false; it is text.'],
  ['kit, describe: 5', kit({ ...runner, describe: 5 }), 'testStore takes as describe: a function; it is the number 5.'],
  [
    'contents kit, largest: 5',
    contentsKit({ ...runner, largest: 5 }),
    'testContents takes as largest: a number of bytes, 2000000 or more; it is the number 5.',
  ],
  ['detail: 5', error({ detail: 5 }), 'HttpError takes as detail: text; it is the number 5.'],
  ['detail: null', error({ detail: null }), 'HttpError takes as detail: text; it is null.'],
  ["errors: 'x'", error({ errors: 'x' }), 'HttpError takes as errors: a list'],
  ['errors: [null]', error({ errors: [null] }), 'HttpError takes as errors: a list'],
  [
    "errors: [{ path: '/a' }]",
    error({ errors: [{ path: '/a', detail: 'x' }] }),
    '{ pointer, detail } or { parameter, detail }',
  ],
  ['type: 5', error({ type: 5 }), 'HttpError takes as type: text; it is the number 5.'],
  [
    'extensions: a Map',
    error({ extensions: new Map() }),
    'HttpError takes as extensions: an object with members of its own; it is a Map.',
  ],
  ["expose: 'false'", error({ expose: 'false' }), 'HttpError takes as expose: true or false; it is text.'],
  [
    'headers: a Headers',
    error({ headers: new Headers({ 'Retry-After': '5' }) }),
    'HttpError takes headers as an object',
  ],
  [
    'HttpError(a Map)',
    error(new Map([['detail', 'x']])),
    "HttpError takes options such as { detail: 'why' }, not a Map.",
  ],
  ...[null, [], true, new Map(), Promise.resolve({})].map((options): (typeof cases)[number] => [
    `client(${String(options)})`,
    client(options),
    'createResourceClient takes as options: object.',
  ]),
  ...Object.entries({
    fetch: ['function', null, 'fetch', {}],
    token: ['string, function', null, 5, {}],
    headers: ['object, function', null, 'a', [['a', 'b']], new Headers(), new Map(), Promise.resolve({})],
    prefer: ['merge, json', null, 'patch', Symbol('merge'), ['merge']],
    maxAttempts: ['number from 1', null, '5', 0, Number.NaN, 5n],
    timeout: ['number from 1', null, true, 0, Number.NaN],
    retries: ['number from 0', null, '', [], -1, Number.NaN],
    keyed: ['list of paths', null, '/orders', {}, new Set(['/orders']), [5], [null]],
    cacheSize: ['number from 0', null, [], Symbol('a'), -1],
  }).flatMap(([name, [text, ...values]]) =>
    values.map((value): (typeof cases)[number] => [
      `client, ${name}: ${String(value)}`,
      client({ [name]: value }),
      `createResourceClient takes as ${name}: ${String(text)}.`,
    ]),
  ),
  ['client, keyed: orders', client({ keyed: ['/users', 'orders'] }), 'takes as keyed: list of paths.'],
  ...['max-age: 60', 'max-age=', '=60', 'public; max-age=60', 'no cache', 'private="'].flatMap(
    (cacheControl): (typeof cases)[number][] => {
      const text = "cacheControl: directives of Cache-Control, such as 'public, max-age=60'"
      return [
        [`cacheControl: ${cacheControl}`, service({ cacheControl }), `createResourceService takes as ${text}`],
        [`document, ${cacheControl}`, () => document({ cacheControl }), `document takes as ${text}`],
        [
          `postCacheControl: ${cacheControl}`,
          () => collection({ postCacheControl: cacheControl }),
          'collection takes as postCacheControl: directives',
        ],
      ]
    },
  ),
  ...['json', 'application/*', '', 'text/plain; charset'].map((contentType): (typeof cases)[number] => [
    `patch, contentType: ${contentType}`,
    () => patch({ read() {}, write() {}, contentType }),
    "patch takes as contentType: a media type, such as 'application/json'",
  ]),
  ...[{ scan: 'string' }, { kind: { type: 'string', pointer: '/scan' } }].map((query): (typeof cases)[number] => [
    `query beside a file: ${JSON.stringify(query)}`,
    () => collection({ query, files: { scan: {} } }),
    `collection has in query the property ${Object.keys(query).join()}, which says of the file scan: { name, type, size }.`,
  ]),
  ...(
    [
      [{ query: { id: 'string' } }, 'id', 'string', 'number'],
      [{ query: { key: { type: 'date-time', pointer: '/id' } } }, 'key', 'date-time', 'number'],
      [{ query: { id: 'number' }, ids: 'uuid' }, 'id', 'number', 'string'],
    ] as const
  ).map(([options, name, type, idType]): (typeof cases)[number] => [
    `query of a type that no id has: ${JSON.stringify(options)}`,
    () => collection(options),
    `collection has in query the property ${name} of type '${type}'; its ids are of type '${idType}'.`,
  ]),
  ...(
    [
      [{ files: { id: {} } }, 'collection has in files the property id, which the server sets.'],
      [{ formFields: { key: 'id' } }, 'collection has in formFields the property id'],
      [{ textProperty: 'state', create: 'accepted' }, 'collection has in textProperty the property state'],
      [{ files: { problem: {} }, create: 'accepted' }, 'collection has in files the property problem'],
      [{ scope: { properties: ['id'], values } }, 'scope has the property id, which the server sets.'],
      [{ scope: { properties: ['state'], values }, create: 'accepted' }, 'scope has the property state'],
      [{ query: { state: 'number' }, create: 'accepted' }, "the state of its work is of type 'string'."],
    ] as const
  ).map(([options, message]): (typeof cases)[number] => [
    `a property that the server sets: ${JSON.stringify(options)}`,
    () => collection(options),
    message,
  ]),
  ...[
    ...['/api', '', 'localhost:8080', 'example.org/api', '//example.org', 'http://', undefined, 5, {}],
    ...['http://ada:secret@example.org/api', 'http://:secret@example.org/api'],
  ].map((base): (typeof cases)[number] => [
    `client, base: ${String(base)}`,
    () => (createResourceClient as Loose)(base, { fetch }),
    'createResourceClient takes as base: URL, no query or user.',
  ]),
  ...[Object.create({ token: 'a' }), Object.defineProperty({}, 'token', { value: 'a' })].map(
    (options): (typeof cases)[number] => [
      'client, a token that a copy of the options is without',
      client(options),
      'createResourceClient takes own, enumerable options, not "token".',
    ],
  ),
  ...[() => new Date(), () => Number.NaN, () => String(Date.now()), async () => Date.now(), () => 5n].map(
    (now): [string, () => unknown, string] => [`now: ${now}`, service({ now }), 'gives milliseconds since the epoch'],
  ),
  ['memoryStore, now: () => undefined', () => memoryStore({ now: () => undefined }), 'memoryStore takes as now: '],
  ['client, timeuot', client({ timeuot: 5 }), 'createResourceClient has no option "timeuot".'],
  ['client, toString', client({ toString: undefined }), 'createResourceClient has no option "toString".'],
]

describe('values of options that could not work', () => {
  it.each(cases)('are a TypeError that names the option and its values: %s', (_, call, message) => {
    expect(call).toThrow(TypeError)
    expect(call).toThrow(message)
  })

  it('do not include those that work', () => {
    const files = { scan: {}, photo: { describe: ({ size }: { size: number }) => size } }
    const query = { photo: 'number', size: { type: 'number', pointer: '/scan/size' } }
    expect(collection({ files, query })).toBeDefined()
    for (const ids of ['uuid', 'string'] as const) expect(collection({ ids, query: { id: 'string' } })).toBeDefined()
    expect(collection({ query: { id: 'number', part: { type: 'string', pointer: '/id/part' } } })).toBeDefined()
    for (const cacheControl of ['', 'no-store', 'public,max-age=60', 'private="Set-Cookie, X-A", stale-if-error=5']) {
      expect(document({ cacheControl })).toBeDefined()
    }
    const limits = { depth: 5, nameLength: 5, fileSize: 5 }
    expect(bodyParse({ accept: ['json'], limits })).toBeDefined()
    expect(patch({ read() {}, write() {}, limits })).toBeDefined()
    expect(patch({ read() {}, write() {}, contentType: 'application/geo+json; charset=utf-8' })).toBeDefined()
    expect(service({ patchFormats: [jsonPatch()] })()).toBeDefined()
    // Services that share their options: not each of them has a use for all.
    const images = { resources: { '/a/{name}': document({ types: ['image/*'] }) } }
    expect(service({ ...images, operations: {}, patchFormats: [jsonPatch()] })()).toBeDefined()
    expect(client({ keyed: ['/orders'] })()).toBeDefined()
    expect(service({ mountPath: '/%E6%97%A5/v1.0/~a' })()).toBeDefined()
  })
})
