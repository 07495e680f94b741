import { hash, timingSafeEqual } from 'node:crypto'

/** Text in one shape that comparisons take equally long for, whatever its length. */
export function digestText(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** Compares two secrets in a time that tells neither their lengths nor where they differ. */
export function isEqualSecret(a: string, b: string): boolean {
  return timingSafeEqual(digestText(a), digestText(b))
}

/** Two ways to type one letter are one letter (RFC 7617 §2.1, RFC 8265 §3.3). */
export function normalizeName(text: string): string {
  return text.normalize('NFC')
}

/** An account under the name that the configuration gives it. */
export interface NamedAccount<Secret> {
  readonly name: string
  readonly secret: Secret
}

/**
 * Accounts by their one spelling: whatever spelling a client sends, the account is the same.
 * @throws TypeError for two accounts whose names differ in spelling only
 */
export function indexAccounts<Secret>(
  accounts: readonly (readonly [string, Secret])[],
): ReadonlyMap<string, NamedAccount<Secret>> {
  const index = new Map(accounts.map(([name, secret]) => [normalizeName(name), { name, secret }]))
  if (index.size < accounts.length) throw new TypeError('"accounts" has one name in two spellings.')
  return index
}

/**
 * Reads padded base64 in its one spelling; `undefined` for anything else. Node ignores what is not base64: credentials
 * would have several spellings.
 */
export function parseBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}
