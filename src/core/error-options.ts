import type { ContentError, ErrorHeaders, HttpErrorOptions, ParameterError } from './errors.ts'
import {
  BOOLEAN,
  CHECKED_LATER,
  checkValue,
  describeValue,
  hasProperties,
  listOf,
  RECORD,
  type ValueRule,
} from './option-values.ts'
import { createUnknownOption } from './options.ts'

const TEXT: ValueRule = { accepts: (value) => typeof value === 'string', text: 'text' }
const FAULT: ValueRule = {
  accepts(value) {
    if (!hasProperties(value)) return false
    const { pointer, parameter, detail } = value as Partial<ContentError & ParameterError>
    return TEXT.accepts(detail) && TEXT.accepts(pointer ?? parameter)
  },
  text: '{ pointer, detail } or { parameter, detail }',
}

const RULES: Readonly<Record<keyof HttpErrorOptions, ValueRule>> = {
  detail: TEXT,
  headers: CHECKED_LATER,
  errors: listOf(FAULT),
  type: TEXT,
  extensions: RECORD,
  expose: BOOLEAN,
  cause: CHECKED_LATER,
}

/** @throws TypeError for an option that does not exist, or whose value could not be sent as it is */
export function checkErrorOptions(given: unknown): void {
  if (given === undefined) return
  if (!hasProperties(given)) {
    throw new TypeError(`HttpError takes options such as { detail: 'why' }, not ${describeValue(given)}.`)
  }
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(RULES, name)) throw createUnknownOption('HttpError', name, Object.keys(RULES))
    checkValue('HttpError', name, RULES[name as keyof HttpErrorOptions], value)
  }
}

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
