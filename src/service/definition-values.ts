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
  RECORD,
  recordOf,
  SIZE,
  shapedAs,
  TEXT,
  type ValueRule,
  writtenAs,
} from '../core/option-values.ts'
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

/** What the options of every kind of resource must be. A wrong value would leave out what it asks for, silently. */
export const RESOURCE_VALUES: Rules = {
  methods: SOME_METHODS,
  cacheControl: FIELD_VALUE,
  createdCacheControl: FIELD_VALUE,
  preconditions: oneOf('optional', 'required'),
  require: either(oneOf('all', 'writes', 'none'), FUNCTION),
  authorize: FUNCTION,
  conflict: FUNCTION,
  replaced: oneOf('representation', 'none'),
  remove: oneOf('erase', 'soft', 'queued'),
  removed: oneOf('none', 'tag', 'confirmation', 'representation'),
  idempotency: oneOf('optional', 'required'),
  idempotencyRetention: DURATION,
  representations: listOf(shapedAs({ type: 'string', render: 'function' })),
  accept: oneOf('strict', 'lenient'),
  aliases: listOf(TEXT),
  types: listOf(TEXT, 1),
  maxSize: SIZE,
  keeps: listOf(oneOf('Content-Language', 'Content-Disposition')),
  inline: listOf(TEXT),
  create: oneOf('created', 'accepted'),
  process: FUNCTION,
  form: recordOf(TEXT),
  text: TEXT,
  files: writtenAs(recordOf(RECORD), 'an object of part names, such as { photo: { required: true } }'),
  names: oneOf('integer', 'string', 'uuid'),
  clientIds: BOOLEAN,
  pageSize: writtenAs(RECORD, 'an object such as { default: 20, max: 100 }'),
  memberMethods: SOME_METHODS,
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
  errors: oneOf('answer', 'forward'),
  patchFormats: listOf(shapedAs({ mediaType: 'string', parse: 'function' })),
  codings: listOf(oneOf('gzip', 'deflate', 'br')),
  cacheControl: FIELD_VALUE,
  openapi: either(TEXT, RECORD),
  onError: FUNCTION,
  log: LOG,
  formatError: FUNCTION,
  explain: either(BOOLEAN, FUNCTION),
  now: FUNCTION,
}

export const OPERATIONS_VALUES: Rules = {
  path: TEXT,
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
