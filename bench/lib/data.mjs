// The data every server is seeded with, so that all of them serve the same bytes.
import crypto from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'

export const ORIGIN = 'https://app.example.test'
export const ALLOW_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
export const ALLOW_HEADERS = ['Authorization', 'Content-Type', 'If-Match', 'If-None-Match']
export const MAX_AGE = 86400
export const BIG_SIZE = 16 * 1024 * 1024
export const SEED_TIME = Date.UTC(2025, 0, 2, 3, 4, 5)

/** About 200 bytes as JSON. */
export function userData(id) {
  return {
    id,
    name: `User Number ${id}`,
    email: `user.${id}@mail.example.test`,
    role: id % 10 === 0 ? 'admin' : 'member',
    active: true,
    team: 'research-and-development',
    note: 'a short note kept beside the account record',
  }
}

/** About 2 KB as JSON: what W6 patches. */
export function docData(n) {
  const sections = []
  for (let i = 0; i < 8; i++) {
    sections.push({
      id: i,
      heading: `Section ${i} of document ${n}`,
      text: 'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua ut enim minim veni.',
      done: i % 2 === 0,
      weight: i * 1.5,
    })
  }
  return {
    status: 'draft',
    title: `Report ${n}`,
    meta: { kind: 'report', owner: 'ops', revision: 7, flags: { a: true, b: false, c: null } },
    tags: ['alpha', 'beta', 'gamma', 'delta', 'epsilon'],
    sections,
    totals: { count: 8, sum: 42, mean: 5.25 },
  }
}

/** Leaves the document the same size however often it is applied. */
export const MERGE_PATCH = {
  status: 'published',
  meta: { revision: 8, flags: { b: true } },
  totals: { sum: 43, extra: null },
}

/** Five operations; repeatable without growing the document. */
export const JSON_PATCH = [
  { op: 'test', path: '/meta/kind', value: 'report' },
  { op: 'replace', path: '/status', value: 'published' },
  { op: 'add', path: '/tags/0', value: 'urgent' },
  { op: 'remove', path: '/tags/5' },
  { op: 'copy', from: '/totals/sum', path: '/meta/revision' },
]

/** Writes data/files/big.bin (16 MiB, seeded) and data/keys.json once. */
export function ensureData(dir) {
  const files = path.join(dir, 'files')
  fs.mkdirSync(files, { recursive: true })
  const big = path.join(files, 'big.bin')
  if (!fs.existsSync(big) || fs.statSync(big).size !== BIG_SIZE) {
    const buf = Buffer.allocUnsafe(BIG_SIZE)
    let x = 0x9e3779b9 | 0
    for (let i = 0; i < BIG_SIZE; i += 4) {
      x ^= x << 13
      x ^= x >>> 17
      x ^= x << 5
      buf.writeInt32LE(x, i)
    }
    fs.writeFileSync(big, buf)
  }
  const keys = path.join(dir, 'keys.json')
  if (!fs.existsSync(keys)) {
    const ed = crypto.generateKeyPairSync('ed25519')
    const es = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const rs = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 })
    const jwk = (k) => k.export({ format: 'jwk' })
    fs.writeFileSync(
      keys,
      JSON.stringify({
        HS256: { secret: crypto.randomBytes(32).toString('base64url') },
        EdDSA: { public: jwk(ed.publicKey), private: jwk(ed.privateKey) },
        ES256: { public: jwk(es.publicKey), private: jwk(es.privateKey) },
        RS256: { public: jwk(rs.publicKey), private: jwk(rs.privateKey) },
      }),
    )
  }
  return { files, keys }
}

const b64 = (v) => Buffer.from(v).toString('base64url')

/** Signs a JWT with node:crypto alone. */
export function signJwt(alg, keys, claims) {
  const input = `${b64(JSON.stringify({ alg, typ: 'JWT' }))}.${b64(JSON.stringify(claims))}`
  let sig
  if (alg === 'HS256')
    sig = crypto.createHmac('sha256', Buffer.from(keys.HS256.secret, 'base64url')).update(input).digest()
  else {
    const key = crypto.createPrivateKey({ key: keys[alg].private, format: 'jwk' })
    if (alg === 'EdDSA') sig = crypto.sign(null, Buffer.from(input), key)
    else if (alg === 'ES256') sig = crypto.sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
    else sig = crypto.sign('sha256', Buffer.from(input), key)
  }
  return `${input}.${b64(sig)}`
}

export function makeTokens(alg, keys, n) {
  const iat = Math.floor(Date.now() / 1000)
  return Array.from({ length: n }, (_, i) =>
    signJwt(alg, keys, {
      iss: 'https://issuer.example.test',
      aud: 'bench',
      sub: `user-${i}`,
      iat,
      exp: iat + 6 * 3600,
    }),
  )
}

/** A multipart/form-data body as one Buffer. */
export function multipartBody({
  fields,
  fileSize,
  fileName = 'upload.bin',
  boundary = '----benchboundary7MA4YWxkTrZu0gW',
}) {
  let head = ''
  for (const [k, v] of Object.entries(fields)) {
    head += `--${boundary}\r\nContent-Disposition: form-data; name="${k}"\r\n\r\n${v}\r\n`
  }
  head += `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${fileName}"\r\nContent-Type: application/octet-stream\r\n\r\n`
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  const file = Buffer.allocUnsafe(fileSize)
  // Printable, CR-free filler: what a parser meets in most files, and legal inside a Lua string.
  for (let i = 0; i < fileSize; i++) file[i] = 97 + ((i * 31 + (i >>> 8)) % 26)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([Buffer.from(head), file, tail]),
    file,
  }
}
