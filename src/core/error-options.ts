import type { ContentError, ErrorHeaders, HttpErrorOptions, ParameterError } from './errors.ts'
import {
  BOOLEAN,
  CHECKED_LATER,
  describeValue,
  hasProperties,
  listOf,
  MEMBERS,
  TEXT,
  type ValueRule,
} from './option-values.ts'
import { type OptionTable, resolveOptions } from './options.ts'

const ANY_TEXT: ValueRule = { accepts: (value) => typeof value === 'string', text: 'text' }
const FAULT: ValueRule = {
  accepts(value) {
    if (!hasProperties(value)) return false
    const { pointer, parameter, detail } = value as Partial<ContentError & ParameterError>
    return ANY_TEXT.accepts(detail) && ANY_TEXT.accepts(pointer ?? parameter)
  },
  text: '{ pointer, detail } or { parameter, detail }',
}

const RULES: OptionTable<HttpErrorOptions> = {
  detail: ANY_TEXT,
  headers: CHECKED_LATER,
  errors: listOf(FAULT),
  type: ANY_TEXT,
  title: TEXT,
  extensions: MEMBERS,
  expose: BOOLEAN,
  cause: CHECKED_LATER,
}

/** Members of the problem document that the error itself has (RFC 9457 §3.1). */
const RESERVED = ['type', 'title', 'status', 'detail', 'errors']

/**
 * A copy that inherits nothing: what pollutes Object.prototype must not become a field or a detail of every error.
 * @throws TypeError for an option that does not exist, or whose value could not be sent as it is
 */
export function readErrorOptions(given: HttpErrorOptions | undefined): HttpErrorOptions {
  if (given === undefined) return NO_OPTIONS
  if (!hasProperties(given)) {
    throw new TypeError(`HttpError takes options such as { detail: 'why' }, not ${describeValue(given)}.`)
  }
  const options = resolveOptions('HttpError', given, RULES)
  const reserved = RESERVED.find((name) => Object.hasOwn(options.extensions ?? {}, name))
  if (reserved === undefined) return options
  throw new TypeError(`HttpError takes as extensions: members beside ${RESERVED.join(', ')}; it has ${reserved}.`)
}

const NO_OPTIONS: HttpErrorOptions = Object.freeze(Object.create(null))
const NO_HEADERS: ErrorHeaders = Object.freeze({})

/** A copy that shares nothing with what was passed. @throws TypeError for anything that could not be sent */
export function readErrorHeaders(given: ErrorHeaders | undefined): ErrorHeaders {
  if (given === undefined) return NO_HEADERS
  if (!hasProperties(given)) {
    throw new TypeError(`HttpError takes headers as an object: { 'Retry-After': '5' }, not ${describeValue(given)}.`)
  }
  const headers: Record<string, string | readonly string[]> = Object.create(null)
  for (const [name, value] of Object.entries(given)) {
    const isList = Array.isArray(value)
    if (typeof value !== 'string' && !(isList && value.every((item) => typeof item === 'string'))) {
      throw new TypeError(`HttpError takes as header ${name}: text, or a list of texts; it is ${describeValue(value)}.`)
    }
    headers[name] = isList ? Object.freeze([...value]) : value
  }
  return Object.freeze(headers)
}
