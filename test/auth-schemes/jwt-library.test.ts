import { expect, it, vi } from 'vitest'
import { jwt } from '../../src/auth-schemes/jwt.ts'
import { createIssuer, issue } from './tokens.ts'

const library = vi.hoisted(() => ({ isMissing: true }))
vi.mock('jose', async (load) => {
  if (library.isMissing) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  return load()
})

it('jwt loads its library again where it could not be loaded before', async () => {
  const issuer = createIssuer('ES256')
  const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', keys: [issuer.jwk] })
  const verify = async () => verifier.verifyToken(issue(issuer), {} as never)
  await expect(verify()).rejects.toThrow()
  library.isMissing = false
  expect(await verify()).toMatchObject({ outcome: 'accepted' })
})
