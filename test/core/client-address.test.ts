import { createServer, type IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createProxyTrust, readPeer } from '../../src/core/peer.ts'
import { auth } from '../../src/handlers/auth.ts'
import { listen, send } from '../adapters/raw.ts'

/** The address that a guard behind proxies on this machine and in 10.0.0.0/8 finds. */
async function findAddress(fields: readonly string[]): Promise<string | undefined> {
  const found: (string | undefined)[] = []
  const guard = auth({
    principal: () => ({ id: 'ada' }),
    challenge: 'Session',
    trustProxy: ['loopback', '10.0.0.0/8'],
    authorize: (_principal, { clientAddress }) => found.push(clientAddress) > 0,
  })
  const port = await listen(createServer((req, res) => guard(req, res, () => res.writeHead(204).end())))
  expect((await send(port, { target: '/', fields })).status).toBe(204)
  return found[0]
}

it.each([
  [[], '127.0.0.1'],
  [['X-Forwarded-For: 192.0.2.1:5555'], '192.0.2.1'],
  [['X-Forwarded-For: 192.0.2.7, 192.0.2.1, 10.0.0.2'], '192.0.2.1'],
  [['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-For: [2001:db8::1]:443'], '2001:db8::1'],
  [['Forwarded: for="[2001:db8::1]:443"'], '2001:db8::1'],
  // A proxy that names no client is itself the nearest that is known.
  [['Forwarded: proto=https'], '127.0.0.1'],
  [['Forwarded: for=192.0.2.1, proto=https'], '127.0.0.1'],
  [['Forwarded: for=192.0.2.1, for=;proto=https, for=10.0.0.2'], '127.0.0.1'],
  [['Forwarded: for=192.0.2.1, proto=https, for=10.0.0.2'], '10.0.0.2'],
  [['X-Forwarded-For: '], '127.0.0.1'],
  [['X-Forwarded-For: 192.0.2.1, '], '127.0.0.1'],
  [['X-Forwarded-For: 192.0.2.1,, 10.0.0.2'], '10.0.0.2'],
  // A proxy writes one of the two fields: what the other one says, its client may have made up.
  [['Forwarded: for=192.0.2.1', 'X-Forwarded-For: 192.0.2.2'], '127.0.0.1'],
  [['Forwarded: for=192.0.2.9, for=192.0.2.1', 'X-Forwarded-For: 192.0.2.1'], '192.0.2.1'],
  [['Forwarded: for=192.0.2.1, for="', 'X-Forwarded-For: 192.0.2.1'], '127.0.0.1'],
])('finds the address of the client in %j: %s', async (fields, address) => {
  expect(await findAddress(fields)).toBe(address)
})

it('finds the address anew for a guard that knows of other proxies than the one before it', async () => {
  const found: (string | undefined)[] = []
  const guard = (options: object) =>
    auth({
      principal: () => ({ id: 'ada' }),
      challenge: 'Session',
      authorize: (_principal, { clientAddress }) => found.push(clientAddress) > 0,
      ...options,
    })
  const guards = [guard({}), guard({ trustProxy: 'loopback' })] as const
  const port = await listen(
    createServer((req, res) => guards[0](req, res, () => guards[1](req, res, () => res.writeHead(204).end()))),
  )
  expect((await send(port, { target: '/', fields: ['X-Forwarded-For: 192.0.2.1'] })).status).toBe(204)
  expect(found).toEqual(['127.0.0.1', '192.0.2.1'])
})

it('knows a proxy by its address, whatever zone that is in', () => {
  const isTrusted = createProxyTrust('fe80::/10')
  const peer = { isEncrypted: false, isLocal: false }
  expect(isTrusted({ ...peer, address: 'fe80::1%eth0' })).toBe(true)
  expect(isTrusted({ ...peer, address: 'fd00::1%eth0' })).toBe(false)
})

it.each([
  ['192.0.2.1/32', '192.0.2.1', '192.0.2.0'],
  ['2001:db8::1/128', '2001:db8::1', '2001:db8::2'],
  ['0.0.0.0/0', '192.0.2.1', '2001:db8::1'],
])('takes %s for the proxies that it names', (entry, inside, outside) => {
  const isTrusted = createProxyTrust(entry)
  const peer = { isEncrypted: false, isLocal: false }
  expect(isTrusted({ ...peer, address: inside })).toBe(true)
  expect(isTrusted({ ...peer, address: outside })).toBe(false)
})

it.each(['192.0.2.1/33', '2001:db8::1/129'])('refuses %s, which has no such prefix', (entry) => {
  expect(() => createProxyTrust(entry)).toThrow(`"trustProxy" has "${entry}"`)
})

it.each([
  ['a promise', () => Promise.resolve(true)],
  ['text', () => 'false'],
])('takes no peer for a proxy where the function of trustProxy returns %s', (_, trust) => {
  const isTrusted = createProxyTrust(trust as never)
  const ask = () => isTrusted({ isEncrypted: false, isLocal: false, address: '192.0.2.1' })
  let answer: unknown
  try {
    answer = ask()
  } catch (error) {
    answer = error
  }
  expect(answer).not.toBe(true)
  expect(answer instanceof TypeError || answer === false).toBe(true)
})

it('takes no client that has left for one on this machine', () => {
  const socket = new Socket()
  const req = { socket, headers: {}, httpVersionMajor: 1 } as IncomingMessage
  expect(readPeer(req).isLocal).toBe(true) // as a Unix socket
  socket.destroy()
  expect(readPeer(req).isLocal).toBe(false)
})
