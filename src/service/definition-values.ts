import {
  BOOLEAN,
  COUNT,
  DURATION,
  either,
  FIELD_VALUE,
  FUNCTION,
  LOG,
  listOf,
  MILLISECONDS,
  oneOf,
  PRECONDITIONS,
  RECORD,
  recordOf,
  SIZE,
  shapedAs,
  TEXT,
  type ValueRule,
  writtenAs,
} from '../core/option-values.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { METHODS } from '../protocol/methods.ts'

type Rules = Readonly<Record<string, ValueRule>>

const SOME_METHODS = listOf(oneOf(...METHODS), 1)

/** A date, as an object or in ISO 8601. */
const MOMENT: ValueRule = {
  accepts: (value) =>
    (value instanceof Date || (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value))) &&
    !Number.isNaN(new Date(value).getTime()),
  text: 'a Date, or a date in ISO 8601 such as "2027-01-31"',
}

const MEDIA_RANGE: ValueRule = {
  accepts: (value) => typeof value === 'string' && parseMediaType(value) !== undefined,
  text: "a media range such as 'image/*'",
}

/** What the options of every kind of resource must be. A wrong value would leave out what it asks for, silently. */
export const RESOURCE_VALUES: Rules = {
  methods: SOME_METHODS,
  cacheControl: FIELD_VALUE,
  postCacheControl: FIELD_VALUE,
  preconditions: PRECONDITIONS,
  digests: oneOf('optional', 'required'),
  requireAuth: either(oneOf('all', 'writes', 'none'), FUNCTION),
  authorize: FUNCTION,
  conflict: FUNCTION,
  putResponse: oneOf('representation', 'none'),
  deletion: oneOf('hard', 'soft', 'queued'),
  deleteResponse: oneOf('none', 'tag', 'confirmation', 'representation'),
  idempotency: oneOf('optional', 'required'),
  idempotencyRetention: DURATION,
  representations: listOf(shapedAs({ type: 'string', render: 'function' })),
  accept: oneOf('strict', 'lenient'),
  aliases: listOf(TEXT),
  types: listOf(MEDIA_RANGE, 1),
  maxSize: SIZE,
  storedHeaders: listOf(oneOf('Content-Language', 'Content-Disposition')),
  allowInline: listOf(MEDIA_RANGE),
  create: oneOf('created', 'accepted'),
  process: FUNCTION,
  formFields: recordOf(TEXT),
  textProperty: TEXT,
  files: writtenAs(recordOf(RECORD), 'an object of part names, such as { photo: { required: true } }'),
  ids: oneOf('integer', 'string', 'uuid'),
  clientIds: BOOLEAN,
  pageSize: writtenAs(RECORD, 'an object such as { default: 20, max: 100 }'),
  memberMethods: SOME_METHODS,
  query: writtenAs(RECORD, "an object of names and types, such as { status: 'string' }"),
  scope: either(FUNCTION, shapedAs({ properties: 'object', values: 'function' })),
  count: BOOLEAN,
  title: TEXT,
  description: TEXT,
  examples: RECORD,
  jsonSchema: RECORD,
  deprecated: MOMENT,
  sunset: MOMENT,
}

/** The same for the options of a service. */
export const SERVICE_VALUES: Rules = {
  resources: writtenAs(
    recordOf(shapedAs({ kind: 'string', options: 'object' })),
    "an object of paths and definitions, such as { '/users': collection() }",
  ),
  methodOverride: BOOLEAN,
  strictMount: BOOLEAN,
  fallthrough: BOOLEAN,
  https: oneOf('required', 'optional'),
  unexpectedErrors: oneOf('respond', 'forward'),
  patchFormats: listOf(shapedAs({ mediaType: 'string', parse: 'function' })),
  contentCodings: listOf(oneOf('gzip', 'deflate', 'br')),
  cacheControl: FIELD_VALUE,
  openapi: either(TEXT, RECORD),
  onError: FUNCTION,
  log: LOG,
  formatError: FUNCTION,
  explain: either(BOOLEAN, FUNCTION),
  now: FUNCTION,
}

export const OPERATIONS_VALUES: Rules = {
  path: {
    accepts: (value) => typeof value === 'string' && /^(?:\/[^/{}?#\s]+)+$/.test(value),
    text: "a path, such as '/operations'",
  },
  concurrency: COUNT,
  maxAttempts: COUNT,
  pollInterval: MILLISECONDS,
  queue: shapedAs({ enqueue: 'function' }),
  retention: DURATION,
  isAdmin: FUNCTION,
}

/** What a service asks of a store. */
export const STORE: ValueRule = shapedAs({
  read: 'function',
  write: 'function',
  create: 'function',
  remove: 'function',
  list: 'function',
})
