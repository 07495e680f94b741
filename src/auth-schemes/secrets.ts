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
