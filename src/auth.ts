// Authentication: the middleware, its schemes, and what helps to verify passwords and tokens.

export { type AttemptLimitOptions, attemptLimit, type Throttle } from './auth-schemes/accounts.ts'
export { type BasicOptions, basic, type PasswordVerifier } from './auth-schemes/basic.ts'
export {
  type BearerOptions,
  bearer,
  insufficientScope,
  type OpaqueTokenVerifier,
  type TokenResult,
  type TokenVerifier,
} from './auth-schemes/bearer.ts'
export { type DigestOptions, digest } from './auth-schemes/digest.ts'
export {
  type DigestAlgorithm,
  type DigestHashes,
  type DigestSecret,
  hashDigestSecret,
} from './auth-schemes/digest-response.ts'
export { type Claims, type JwtOptions, jwt, type KeyInput } from './auth-schemes/jwt.ts'
export {
  type KerberosAcceptorOptions,
  kerberosAcceptor,
  type NegotiateAcceptor,
  type NegotiateOptions,
  type Negotiation,
  type NegotiationStep,
  negotiate,
} from './auth-schemes/negotiate.ts'
export type { SharedNonces } from './auth-schemes/nonces.ts'
export { hashPassword, type PasswordCost, verifyPassword } from './auth-schemes/password-hash.ts'
export type { ProtectedResourceMetadataOptions } from './auth-schemes/resource-metadata.ts'
export type { AuthResult, AuthScheme, Verdict, VerifiedUser } from './auth-schemes/scheme.ts'
export {
  type AuthOptions,
  auth,
  type HostPrincipal,
  type HostUser,
  principalOf,
  type RequireRule,
} from './handlers/auth.ts'
export { protectedResourceMetadata } from './handlers/resource-metadata.ts'
