import type { Exchange, Principal } from '../core/exchange.ts'
import type { MaybePromise } from '../core/handler.ts'

/** What a scheme says about the credentials of a request. */
export type AuthResult =
  /** The credentials are good. `fields` go into every answer, names and values in turn: Authentication-Info. */
  | { readonly outcome: 'accepted'; readonly principal: Principal; readonly fields?: readonly string[] }
  /**
   * 401. `challenges` replace the scheme's own in WWW-Authenticate, where the failure has to be named in them
   * (`error="invalid_token"`, `stale=true`, a token of Negotiate).
   */
  | { readonly outcome: 'rejected'; readonly reason: string; readonly challenges?: readonly string[] }

/** An authentication scheme (RFC 9110 §11.1): one file each, one entry in an options list. */
export interface AuthScheme {
  /** The name in the Authorization field, compared case-insensitively: `Basic`. */
  readonly name: string
  /** The challenges for a request without usable credentials, each a whole WWW-Authenticate value. */
  challenges(exchange: Exchange): readonly string[]
  /**
   * Verifies credentials.
   * @param value what follows the scheme name in Authorization
   * @throws HttpError for answers other than 401: 403 insufficient_scope, 429, 503 while keys cannot be fetched
   */
  authenticate(value: string, exchange: Exchange): MaybePromise<AuthResult>
}
