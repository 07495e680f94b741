// HTTP as pure functions: strings and numbers in, data and decisions out.

export {
  type ChallengeParameter,
  type Credentials,
  formatChallenge,
  parseAuthorization,
  parseAuthParameters,
} from './protocol/authorization.ts'
export { type ByteRange, formatContentRange, type RangeSelection, selectRanges } from './protocol/byte-range.ts'
export {
  type ContentDisposition,
  formatContentDisposition,
  parseContentDisposition,
} from './protocol/content-disposition.ts'
export { formatHttpDate, parseHttpDate } from './protocol/dates.ts'
export { mergeVary } from './protocol/field-value.ts'
export { type ForwardedHop, parseForwarded } from './protocol/forwarded.ts'
export {
  type AcceptRange,
  isJsonType,
  type MediaType,
  parseAccept,
  parseMediaType,
  refusesIdentity,
  selectMediaType,
} from './protocol/media-type.ts'
export {
  type Conditions,
  type EntityTagMatch,
  evaluateIfRange,
  evaluatePreconditions,
  formatEntityTag,
  isEntityTag,
  matchEntityTags,
  type PreconditionResult,
  type Validators,
} from './protocol/preconditions.ts'
export { type Preferences, parsePrefer } from './protocol/prefer.ts'
export {
  formatAllow,
  isSafeMethod,
  type Method,
  parseRequestTarget,
  type RequestTarget,
} from './protocol/request-line.ts'
