import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import type { Route } from '../../src/actions/route.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { templateOf } from '../../src/openapi/components.ts'
import { createDocument } from '../../src/openapi/create-document.ts'
import { isDeep } from '../../src/openapi/facts.ts'
import { HEADER_NAMES } from '../../src/openapi/headers.ts'
import type { ServiceView } from '../../src/openapi/inputs.ts'
import { GENERAL_FAILURES } from '../../src/openapi/responses.ts'
import { isInMediaRange } from '../../src/protocol/media-type.ts'

/** An answer of a service, as it was handed to the writer. */
export interface RecordedAnswer {
  readonly view: ServiceView
  readonly route: object
  readonly path: string
  readonly method: string
  readonly accept: string | undefined
  readonly status: number
  /** Names of the fields. */
  readonly names: readonly string[]
  readonly contentType: string | undefined
  readonly length: string | undefined
  /** The content, where it is JSON of a moderate size. */
  readonly text: string | undefined
}

/** What descriptions say can be answered, and what was: kind of resource, method, status and type of problem. */
export interface AnswerRecord {
  readonly described: readonly string[]
  readonly seen: readonly string[]
}

/** Where each test file leaves what it has seen. */
export const RECORDS: string = join('.tmp', 'answers')

/** The name of the record of a test file. */
export function nameRecord(file: string): string {
  return `${relative('.', file).replaceAll(/\W+/g, '-')}.json`
}

export function keepRecord(file: string, record: AnswerRecord): void {
  mkdirSync(RECORDS, { recursive: true })
  writeFileSync(join(RECORDS, nameRecord(file)), JSON.stringify(record))
}

interface DescribedResponse {
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>
  readonly content?: Readonly<Record<string, { readonly schema?: JsonObject }>>
}

type Operation = { readonly responses: Readonly<Record<string, JsonObject>> }

const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false })
;(ajvFormats as unknown as (ajv: Ajv2020) => void)(ajv)
const validators = new Map<string, ValidateFunction>()

/** Items that a test has put into a store around the service: no request could have written them so. */
const OUTSIDE: ReadonlySet<string> = new Set(['/users/500'])

/** Holds answers against the descriptions of their services. */
export function checkAnswers(
  answers: readonly RecordedAnswer[],
): AnswerRecord & { readonly faults: readonly string[] } {
  const documents = new Map<ServiceView, JsonObject>()
  const faults = new Set<string>()
  const described = new Set<string>()
  const seen = new Set<string>()
  for (const answer of answers) {
    const { view } = answer
    let document = documents.get(view)
    if (document === undefined) {
      document = createDocument(view, { info: { title: 'Test', version: '1' }, version: '3.2' })
      documents.set(view, document)
      for (const key of listDescribed(view, document)) described.add(key)
    }
    for (const fault of checkAnswer(answer, document)) {
      faults.add(`${answer.method} ${answer.path} ${answer.status}: ${fault}`)
    }
    seen.add(keyOf(answer))
  }
  return { faults: [...faults].slice(0, 20), described: [...described].sort(), seen: [...seen].sort() }
}

function keyOf({ route, method, status, text }: RecordedAnswer): string {
  const type = status >= 400 && text !== undefined ? readProblemType(text) : undefined
  return [(route as Route).kind, method, status, ...(type === undefined ? [] : [type])].join(' ')
}

/** What a description says that a service can answer. */
export function listDescribed(view: ServiceView, document: JsonObject): readonly string[] {
  return view.routes.flatMap(({ pattern, route }) => {
    const item = (document['paths'] as JsonObject)[templateOf(pattern)] as
      | Readonly<Record<string, Operation>>
      | undefined
    // Beside a name at the same place, OpenAPI has no place for a path of any depth.
    return Object.entries(item ?? {})
      .filter(([method]) => method !== 'parameters')
      .flatMap(([method, { responses }]) =>
        Object.entries(responses)
          .filter(([status]) => status !== 'default' && !(view.formatsErrors && Number(status) >= 400))
          .flatMap(([status, response]) => {
            const base = `${route.kind} ${method.toUpperCase()} ${status}`
            // A target that is malformed has no route to record; test/openapi/every-status.test.ts sends each.
            return typesOf(resolve<DescribedResponse>(document, response))
              .filter((type) => !type.endsWith(':malformed-target'))
              .map((type) => `${base}${type}`)
          }),
      )
  })
}

/** The types of the problems of a response, with a space in front; an empty text where it has none. */
function typesOf({ content }: DescribedResponse): readonly string[] {
  const schema = content?.['application/problem+json']?.schema as
    | { allOf?: readonly { properties?: { type?: { const?: string; enum?: readonly string[] } } }[] }
    | undefined
  const type = schema?.allOf?.[1]?.properties?.type
  return (type?.enum ?? (type?.const === undefined ? [] : [type.const]))
    .map((text) => ` ${text}`)
    .concat(type ? [] : '')
}

function resolve<Value>(document: JsonObject, value: JsonObject): Value {
  const reference = value['$ref']
  if (typeof reference !== 'string') return value as Value
  const [, , section, name] = reference.split('/')
  return ((document['components'] as JsonObject)[section!] as JsonObject)[name!] as Value
}

/** What an answer says that its description does not, or the other way round. */
function checkAnswer(answer: RecordedAnswer, document: JsonObject): readonly string[] {
  const { view, route, status, method } = answer
  const patterns = view.routes.filter((entry) => entry.route === route).map(({ pattern }) => pattern)
  const pattern = patterns.find((pattern) => pattern === answer.path) ?? patterns[0]!
  const item = (document['paths'] as JsonObject)[templateOf(pattern)] as Readonly<Record<string, Operation>> | undefined
  if (item === undefined && isDeep({ pattern })) return []
  const name = method === 'HEAD' ? 'get' : method.toLowerCase()
  const operation = Object.hasOwn(item!, name) ? item![name] : undefined
  if (operation === undefined) {
    // Decided before the method is known to be allowed; OPTIONS answers with Allow.
    const isKnown = [400, 403, 405, ...GENERAL_FAILURES].includes(status) || (method === 'OPTIONS' && status === 204)
    return isKnown ? [] : ['the method is not described']
  }
  const given =
    operation.responses[status] ?? (GENERAL_FAILURES.includes(status) ? operation.responses['default'] : undefined)
  if (given === undefined) return ['the status is not described']
  const response = resolve<DescribedResponse>(document, given)
  // Of a part, a description may say no more than that it is in the type of the whole.
  const whole = resolve<DescribedResponse>(document, operation.responses['200'] ?? {}).content
  const isPart = status === 206 && response.content === undefined
  const content = isPart ? { ...whole, 'multipart/byteranges': {} } : response.content
  return [
    ...checkFields(answer, response, document),
    ...checkContent(answer, { ...response, ...(content && { content }) }, document),
  ]
}

function checkFields({ names }: RecordedAnswer, { headers = {} }: DescribedResponse, document: JsonObject) {
  const isThere = (name: string): boolean => names.some((sent) => sent.toLowerCase() === name.toLowerCase())
  const undescribed = HEADER_NAMES.filter((name) => isThere(name) && headers[name] === undefined)
  const missing = Object.entries(headers).filter(
    ([name, header]) => resolve<{ required?: boolean }>(document, header).required === true && !isThere(name),
  )
  return [...undescribed.map((name) => `${name} is not described`), ...missing.map(([name]) => `${name} is missing`)]
}

function checkContent(answer: RecordedAnswer, { content }: DescribedResponse, document: JsonObject): readonly string[] {
  const { view, status, text, method } = answer
  const isError = status >= 400
  if (isError && view.formatsErrors) return []
  const isEmpty = answer.contentType === undefined || (answer.length === '0' && !isError)
  if (content === undefined) return isEmpty ? [] : ['content is not described']
  // Of a 201, the description says when it has no content.
  if (isEmpty) return [200, 201, 421].includes(status) || method === 'HEAD' ? [] : ['content is missing']
  const essence = answer.contentType!.split(';')[0]!.trim().toLowerCase()
  if (isError && essence === 'text/plain') {
    return /text|\*\/\*/.test(answer.accept ?? '') ? [] : ['text without being asked for']
  }
  const media = content[essence] ?? findMedia(content, essence)
  if (media === undefined) return [`content of type ${essence} is not described`]
  if (text === undefined || media.schema === undefined || OUTSIDE.has(answer.path)) return []
  return validate(media.schema, text, document).map((fault) => `${fault} in ${text.slice(0, 200)}`)
}

/** `application/json` stands for its relatives. */
function findMedia(content: NonNullable<DescribedResponse['content']>, essence: string) {
  const relative = essence.endsWith('+json') ? content['application/json'] : undefined
  const range = Object.keys(content).find((range) => isInMediaRange(range, essence))
  return relative ?? (range === undefined ? undefined : content[range])
}

function validate(schema: JsonObject, text: string, document: JsonObject): readonly string[] {
  const key = JSON.stringify([schema, document['components']])
  let validator = validators.get(key)
  if (validator === undefined) {
    validator = ajv.compile({ allOf: [schema], components: document['components'] })
    validators.set(key, validator)
  }
  let value: JsonValue
  try {
    value = JSON.parse(text) as JsonValue
  } catch {
    return ['content is not JSON']
  }
  return validator(value)
    ? []
    : (validator.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** `formatError` may answer with what is not a problem document. */
function readProblemType(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { type?: string }).type
  } catch {
    return undefined
  }
}
