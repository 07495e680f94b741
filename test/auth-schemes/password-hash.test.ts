import { describe, expect, it } from 'vitest'
import { hashPassword, parsePasswordHash, verifyPassword } from '../../src/auth-schemes/password-hash.ts'
import { isHttpError } from '../../src/core/errors.ts'

const CHEAP = { log2n: 4, parallelization: 1 }

const TOGETHER = 'less than 16 with a blockSize of 1, and with a larger one what takes 1 GiB at most.'

describe('hashPassword', () => {
  it('makes another hash each time, in the PHC string format', async () => {
    const [a, b] = await Promise.all([hashPassword('p', CHEAP), hashPassword('p', CHEAP)])
    expect(a).toMatch(/^\$scrypt\$ln=4,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(a).not.toBe(b)
  })

  it('is expensive by default', async () => {
    expect(await hashPassword('p')).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$/)
  })

  it.each([
    ['log2n: an integer from 1 to 20; it is the number 0.', { log2n: 0 }],
    ['log2n: an integer from 1 to 20; it is the number 21.', { log2n: 21 }],
    ['log2n: an integer from 1 to 20; it is the number 4.5.', { log2n: 4.5 }],
    ['log2n: an integer from 1 to 20; it is text.', { log2n: '4' }],
    ['blockSize: an integer from 1 to 32; it is the number 0.', { blockSize: 0 }],
    ['blockSize: an integer from 1 to 32; it is the number 33.', { blockSize: 33 }],
    ['parallelization: an integer from 1 to 16; it is the number 0.', { parallelization: 0 }],
    ['parallelization: an integer from 1 to 16; it is the number 17.', { parallelization: 17 }],
    [`log2n: ${TOGETHER}`, { log2n: 20, blockSize: 9 }],
    [`log2n: ${TOGETHER}`, { log2n: 16, blockSize: 1 }],
  ])('refuses a cost that is out of bounds, and names them: %s', async (text, cost) => {
    await expect(hashPassword('p', cost as never)).rejects.toThrow(new TypeError(`hashPassword takes as ${text}`))
  })

  it.each([
    ['hashPassword has no option "logN". Did you mean "log2n"?', { logN: 4 }],
    ['hashPassword has no option "cost".', { cost: 4 }],
    ['hashPassword takes an object of options, not the number 12.', 12],
    ['hashPassword takes options as enumerable properties of the object itself', Object.create({ log2n: 4 })],
  ])('does not make a hash of another cost than it was asked for: %s', async (message, cost) => {
    await expect(hashPassword('p', cost as never)).rejects.toThrow(message)
  })

  it('makes hundreds wait, and sends the rest away for a moment (threat 99)', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 200 }, () => hashPassword('p', CHEAP)))
    const refused = tries.filter((result) => result.status === 'rejected')
    expect(tries.length - refused.length).toBeGreaterThanOrEqual(66)
    expect(refused.length).toBeGreaterThan(0)
    for (const { reason } of refused) {
      expect(isHttpError(reason) && reason.status).toBe(503)
      expect(reason.headers['Retry-After']).toBe('1')
    }
    expect(await verifyPassword('p', await hashPassword('p', CHEAP))).toBe(true)
  })
})

describe('verifyPassword', () => {
  it('knows the password, in whatever form its letters were typed (RFC 8265 §4.2)', async () => {
    const hash = await hashPassword('pässwörd €', CHEAP)
    expect(await verifyPassword('pässwörd €'.normalize('NFD'), hash)).toBe(true)
    expect(await verifyPassword('passwörd €', hash)).toBe(false)
    expect(await verifyPassword('', hash)).toBe(false)
  })

  it('knows a hash that another program made (RFC 7914 §12)', async () => {
    // scrypt("pleaseletmein", "SodiumChloride", 16384, 8, 1), the first 64 bytes.
    const key =
      '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887'
    const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
    const hash = `$scrypt$ln=14,r=8,p=1$${text(Buffer.from('SodiumChloride'))}$${text(Buffer.from(key, 'hex'))}`
    expect(await verifyPassword('pleaseletmein', hash)).toBe(true)
    expect(await verifyPassword('pleaseletmeiN', hash)).toBe(false)
  })

  it.each(['ln=20,r=8,p=1', 'ln=15,r=1,p=1', 'ln=1,r=32,p=1', 'ln=1,r=1,p=16'])(
    'takes a hash of the cost %s',
    (cost) => {
      expect(parsePasswordHash(`$scrypt$${cost}$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA`)).toBeDefined()
    },
  )

  it.each([
    '',
    'p',
    '$scrypt$',
    '$scrypt$ln=21,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$scrypt$ln=20,r=9,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$scrypt$ln=16,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$scrypt$ln=4,r=99,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$scrypt$ln=4,r=8,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAA',
    '$scrypt$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAA',
    '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
  ])('takes %j for no hash', async (hash) => {
    expect(parsePasswordHash(hash)).toBeUndefined()
    await expect(verifyPassword('p', hash)).rejects.toThrow(TypeError)
  })
})
