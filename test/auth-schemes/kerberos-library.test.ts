import { expect, it, vi } from 'vitest'
import { kerberosAcceptor } from '../../src/auth-schemes/negotiate.ts'

const library = vi.hoisted(() => ({ isMissing: true }))
vi.mock('kerberos', () => {
  if (library.isMissing) throw new Error('not found')
  const initializeServer = async () => ({
    contextComplete: true,
    username: 'ada@EXAMPLE.TEST',
    response: 'proof',
    step: async () => undefined,
  })
  return { default: { initializeServer } }
})

it('kerberosAcceptor loads its library again where it could not be loaded before', async () => {
  const accept = kerberosAcceptor()
  await expect(Promise.resolve(accept())).rejects.toThrow('needs the npm package "kerberos"')
  library.isMissing = false
  const negotiation = await accept()
  expect(await negotiation.step('ticket')).toEqual({ outcome: 'complete', name: 'ada@EXAMPLE.TEST', token: 'proof' })
})
