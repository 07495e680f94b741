// The demo service: one definition, served by every host in this folder.
import {
  basic,
  bearer,
  collection,
  createResourceService,
  digest,
  document,
  jwt,
  singleton,
} from 'http-resource-service'
import { z } from 'zod'

const User = z.looseObject({ name: z.string().min(1), email: z.email(), role: z.string().optional() })
const Job = z.looseObject({ name: z.string().min(1), priority: z.int() })
const Article = z.looseObject({ title: z.string().min(1), body: z.string().optional() })
const Upload = z.looseObject({ title: z.string().min(1) })
const Note = z.looseObject({ title: z.string().min(1), rank: z.number().optional() })
const Task = z.looseObject({
  title: z.string().min(1),
  status: z.string().optional(),
  priority: z.number().optional(),
  done: z.boolean().optional(),
  dueAt: z.iso.datetime({ offset: true }).optional(),
  address: z.looseObject({ city: z.string().optional() }).optional(),
})
const Comment = z.looseObject({ text: z.string().min(1) })
const Plan = z.looseObject({
  title: z.string().min(1),
  place: z.string().min(1),
  guests: z.int().min(1).max(500),
  vegetarian: z.boolean(),
  edits: z.int().min(0),
})
const Config = z.looseObject({ debug: z.boolean(), port: z.int().min(0).max(65535), logLevel: z.string().min(1) })

const uploads = collection({
  title: 'Upload',
  schema: Upload,
  create: 'accepted',
  files: { file: { required: true } },
  process: inspect,
  deletion: 'queued',
})

const tasks = collection({
  title: 'Task',
  schema: Task,
  query: {
    status: 'string',
    priority: 'number',
    done: 'boolean',
    dueAt: 'date-time',
    city: { type: 'string', pointer: '/address/city' },
  },
  // A token sees its own tasks, admins see all. A token without a subject sees none.
  scope: {
    properties: ['owner'],
    values: ({ principal }) => (isAdmin(principal) ? undefined : { owner: principal?.claims?.sub }),
  },
  count: true,
  idempotency: 'optional',
  beforeWrite: (task, { current, now }) => ({
    ...task,
    createdAt: current?.value.createdAt ?? now.toISOString(),
    updatedAt: now.toISOString(),
  }),
})

const notes = collection({
  title: 'Note',
  schema: Note,
  query: { title: 'string', rank: 'number' },
  count: true,
  idempotency: 'optional',
  jsonAsMergePatch: true,
})

/**
 * @param {import('http-resource-service').ResourceStore} store
 * @param {{ secret: string, user: string, password: string, origins: string[], acceptsWork?: boolean }} settings
 *   `acceptsWork: false` leaves out what needs a process that goes on after the response, which a Worker does not
 */
export function createDemo(store, { secret, user, password, origins, acceptsWork = true }) {
  const accounts = { [user]: password }
  return createResourceService(store, {
    resources: {
      '/': document({ title: 'Home', methods: ['GET'], types: ['application/json'] }),
      '/file.bin': document({ title: 'File', methods: ['GET'] }),
      '/users': collection({
        title: 'User',
        schema: User,
        examples: { ada: { name: 'Ada', email: 'ada@example.org' } },
      }),
      '/jobs': collection({ title: 'Job', schema: Job, formFields: { pri: 'priority' } }),
      ...(acceptsWork && { '/uploads': uploads }),
      '/config/app': singleton({ title: 'Config', schema: Config, aliases: ['/config/app.json'] }),
      '/docs': collection({ title: 'Document', types: ['*/*'] }),
      '/articles': collection({ title: 'Article', schema: Article, deletion: 'soft' }),
      '/notes': notes,
      '/tasks': tasks,
      // Those who see the task read and write its comments.
      '/tasks/{task}/comments': collection({ title: 'Comment', schema: Comment, parent: true }),
      '/tree/{path...}': document({ title: 'Document of any depth' }),
      // What the page edits.
      '/plan': singleton({ title: 'Plan', schema: Plan }),
      '/strict/{name}': document({ title: 'Guarded document', preconditions: 'required' }),
    },
    cors: { origins },
    auth: {
      schemes: [
        bearer(jwt({ keys: createKey(secret), algorithms: ['HS256'], issuer: 'demo', audience: 'demo' })),
        basic({ realm: 'demo', accounts }),
        digest({ realm: 'demo', accounts }),
      ],
      requireAuth: (request) => request.method === 'DELETE' || isForTasks(request) || asksForDeleted(request),
      authorize: (principal, request) => !asksForDeleted(request) || isAdmin(principal),
    },
    operations: { isAdmin },
    openapi: {
      path: '/openapi.json',
      info: {
        title: 'http-resource-service demo',
        version: '1.0.0',
        description: 'What every demo server of http-resource-service serves.',
        contact: { name: 'The authors of http-resource-service' },
        license: { name: 'MIT', identifier: 'MIT' },
      },
    },
    fallthrough: false,
    explain: process.env.EXPLAIN === '1',
  })
}

/** What the store holds before a client has written to it. */
export async function seed(store) {
  const links = ['users', 'jobs', 'uploads', 'config/app', 'docs', 'articles', 'notes', 'tasks', 'plan', 'file.bin']
  const home = Object.fromEntries(links.map((link) => [link, { href: `./${link}` }]))
  const bytes = Buffer.alloc(1024 * 1024, Buffer.from(Array.from({ length: 251 }, (_, i) => i)))
  const json = (value) => ({ contentType: 'application/json', body: JSON.stringify(value) })
  const seeds = {
    '/': json({ title: 'http-resource-service demo', links: home }),
    '/file.bin': { contentType: 'application/octet-stream', body: bytes },
    '/config/app': json({ debug: false, port: 8080, logLevel: 'info' }),
    '/plan': json({ title: 'Dinner on Friday', place: 'At Rosa’s', guests: 6, vegetarian: true, edits: 0 }),
  }
  for (const [path, content] of Object.entries(seeds)) await store.write(path, content, { expect: 'absent' })
}

function isForTasks({ path }) {
  return path === '/tasks' || path.startsWith('/tasks/')
}

function asksForDeleted(request) {
  return request.query.get('deleted') === 'true'
}

/** The account of Basic and Digest is an admin; a token says so itself. */
function isAdmin(principal) {
  return principal !== undefined && (principal.scheme !== 'bearer' || principal.claims?.role === 'admin')
}

/** The work behind an upload: read the file once from end to end, as a virus scanner would. */
async function inspect(item) {
  const file = await item.file('file')
  for await (const _ of file.open()) item.signal.throwIfAborted()
}

/** HS256 keys have at least 32 bytes. HMAC pads shorter ones with zeros, so padding them here changes no signature. */
function createKey(secret) {
  const bytes = Buffer.from(secret)
  return bytes.length >= 32 ? bytes : Buffer.concat([bytes, Buffer.alloc(32 - bytes.length)])
}
