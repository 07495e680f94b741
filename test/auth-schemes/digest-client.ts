import { createHash } from 'node:crypto'

/** What a client makes a response of; everything can be forged. */
export interface DigestRequest {
  readonly user?: string
  readonly password?: string
  readonly method?: string
  readonly uri?: string
  readonly nc?: string
  readonly cnonce?: string
  readonly realm?: string
  /** Parameters that are sent instead of the right ones; `undefined` leaves one out. */
  readonly send?: Readonly<Record<string, string | undefined>>
}

/** The parameters of a Digest challenge. */
export function readChallenge(challenge: string | undefined): ReadonlyMap<string, string> {
  const pairs = [...(challenge ?? '').matchAll(/([\w-]+)=(?:"([^"]*)"|([^\s,]+))/g)]
  return new Map(pairs.map(([, name, quoted, token]) => [name!, quoted ?? token!]))
}

/** Computes an Authorization value the way RFC 7616 §3.4 says, from scratch. */
export function answerChallenge(challenge: string | undefined, request: DigestRequest = {}): string {
  const asked = readChallenge(challenge)
  const algorithm = asked.get('algorithm') ?? 'MD5'
  const hash = (text: string) =>
    createHash(algorithm === 'MD5' ? 'md5' : 'sha256')
      .update(text)
      .digest('hex')
  const { user = 'ada', password = 'secret', method = 'GET', uri = '/', nc = '00000001', cnonce = 'c' } = request
  const realm = request.realm ?? asked.get('realm')
  const nonce = asked.get('nonce')
  const response = hash(
    [hash(`${user}:${realm}:${password}`), nonce, nc, cnonce, 'auth', hash(`${method}:${uri}`)].join(':'),
  )
  const parameters: Record<string, string | undefined> = {
    ...{ username: `"${user}"`, realm: `"${realm}"`, nonce: `"${nonce}"`, uri: `"${uri}"`, response: `"${response}"` },
    ...{ algorithm, qop: 'auth', nc, cnonce: `"${cnonce}"` },
    ...request.send,
  }
  const list = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return `Digest ${list.map(([name, value]) => `${name}=${value}`).join(', ')}`
}
