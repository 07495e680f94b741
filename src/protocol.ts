/** HTTP as pure functions: strings and numbers in, data and decisions out. */

export { type AcceptRange, parseAccept, refusesIdentity, selectMediaType } from './protocol/accept.ts'
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
export { type EntityTagMatch, formatEntityTag, isEntityTag, matchEntityTags } from './protocol/entity-tag.ts'
export { type ForwardedHop, parseForwarded } from './protocol/forwarded.ts'
export { formatHttpDate, parseHttpDate } from './protocol/http-date.ts'
export { isJsonType, type MediaType, parseMediaType } from './protocol/media-type.ts'
export { formatAllow, isSafeMethod, type Method } from './protocol/methods.ts'
export {
  type Conditions,
  evaluateIfRange,
  evaluatePreconditions,
  type PreconditionResult,
  type Validators,
} from './protocol/preconditions.ts'
export { type Preferences, parsePrefer } from './protocol/prefer.ts'
export { parseRequestTarget, type RequestTarget } from './protocol/request-target.ts'
export { mergeVary } from './protocol/vary.ts'
