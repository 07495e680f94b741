import { parseDictionary } from './structured-fields.ts'

/** The algorithms of digest fields that are neither deprecated nor insecure (RFC 9530 §7.2). */
export type DigestAlgorithm = 'sha-256' | 'sha-512'

/** Strongest first. */
export const DIGEST_ALGORITHMS: readonly DigestAlgorithm[] = ['sha-512', 'sha-256']

/** Bytes of a digest. */
export const DIGEST_LENGTHS: Readonly<Record<DigestAlgorithm, number>> = { 'sha-256': 32, 'sha-512': 64 }

/** A digest that a client or a server states of some bytes. */
export interface Digest {
  readonly algorithm: DigestAlgorithm
  readonly value: Uint8Array
}

/** What a Content-Digest or Repr-Digest field says. */
export interface DigestField {
  /** The digests by an algorithm that is known. */
  readonly digests: readonly Digest[]
  /** Known algorithms whose value has a length that they never make. */
  readonly invalid: readonly DigestAlgorithm[]
  /** Names of the other algorithms. */
  readonly unknown: readonly string[]
}

/**
 * Parses Content-Digest or Repr-Digest (RFC 9530 §2, §3).
 * @returns `undefined` when the field is malformed: not a Dictionary of Byte Sequences, or an empty one
 */
export function parseDigestField(field: string): DigestField | undefined {
  const members = parseDictionary(field)
  if (members === undefined || members.size === 0) return undefined
  const digests: Digest[] = []
  const invalid: DigestAlgorithm[] = []
  const unknown: string[] = []
  for (const [name, member] of members) {
    if (member.type !== 'bytes') return undefined
    const algorithm = DIGEST_ALGORITHMS.find((algorithm) => algorithm === name)
    if (algorithm === undefined) unknown.push(name)
    else if (member.value.length === DIGEST_LENGTHS[algorithm]) digests.push({ algorithm, value: member.value })
    else invalid.push(algorithm)
  }
  return { digests, invalid, unknown }
}

/**
 * Selects the algorithm that a Want-Content-Digest or Want-Repr-Digest field asks for (RFC 9530 §4): the highest weight
 * from 1 to 10 wins, of equal ones the stronger algorithm. The field is a hint: members that are not weights are ignored.
 * @param supported the algorithms to select from, strongest first
 * @returns `undefined` when none of them is wanted, or the field is malformed
 */
export function selectDigestAlgorithm(
  field: string,
  supported: readonly DigestAlgorithm[] = DIGEST_ALGORITHMS,
): DigestAlgorithm | undefined {
  const wanted = parseDictionary(field)
  let selected: DigestAlgorithm | undefined
  let highest = 0
  for (const algorithm of supported) {
    const member = wanted?.get(algorithm)
    if (member?.type !== 'integer' || member.value <= highest || member.value > 10) continue
    highest = member.value
    selected = algorithm
  }
  return selected
}

/** A digest as a field value: `sha-256=:…:`. */
export function formatDigest({ algorithm, value }: Digest): string {
  return `${algorithm}=:${btoa(String.fromCharCode(...value))}:`
}
