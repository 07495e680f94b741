import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Nonces of which nothing is kept: each carries the time at which it was made, and a proof that we made it. */
export interface Nonces {
  create(): string
  /** When a nonce was made, in milliseconds since the epoch; `undefined` for one that this process did not make. */
  readTime(nonce: string): number | undefined
}

const TIME = 6
const RANDOM = 10
const PROOF = 16
const FORM = /^[\w-]{43}$/

/** @param getKey the key, with which anybody can make nonces */
export function createNonces(getKey: () => Uint8Array, realm: string): Nonces {
  const context = `http-resource-service digest nonce ${realm}`

  function prove(body: Buffer): Buffer {
    return createHmac('sha256', getKey()).update(context).update(body).digest().subarray(0, PROOF)
  }

  return {
    create() {
      const body = randomBytes(TIME + RANDOM)
      body.writeUIntBE(Date.now(), 0, TIME)
      return Buffer.concat([body, prove(body)]).toString('base64url')
    },
    readTime(nonce) {
      if (!FORM.test(nonce)) return undefined
      const bytes = Buffer.from(nonce, 'base64url')
      // The last character has bits to spare: another spelling would be another nonce with counts of its own.
      if (bytes.toString('base64url') !== nonce) return undefined
      const body = bytes.subarray(0, TIME + RANDOM)
      return timingSafeEqual(prove(body), bytes.subarray(TIME + RANDOM)) ? body.readUIntBE(0, TIME) : undefined
    },
  }
}
