import { createServer } from 'node:http'
import { expect, it } from 'vitest'
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
])('finds the address of the client in %j: %s', async (fields, address) => {
  expect(await findAddress(fields)).toBe(address)
})
