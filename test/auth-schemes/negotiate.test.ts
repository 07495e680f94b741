import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import {
  type KerberosAcceptorOptions,
  kerberosAcceptor,
  type NegotiateAcceptor,
  type NegotiateOptions,
  type NegotiationStep,
  negotiate,
} from '../../src/auth-schemes/negotiate.ts'
import { HttpError } from '../../src/core/errors.ts'
import { auth, principalOf } from '../../src/handlers/auth.ts'
import { type GuardedServer, serveGuarded } from './guarded-server.ts'

let guarded: GuardedServer | undefined
const agents: Agent[] = []

async function serve(options: NegotiateOptions): Promise<GuardedServer> {
  guarded = await serveGuarded({ schemes: [negotiate(options)] })
  return guarded
}

afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy()
  await guarded?.close()
  guarded = undefined
})

function connection(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agents.push(agent)
  return agent
}

const encode = (text: string) => Buffer.from(text).toString('base64')
const token = (text: string) => ({ Authorization: `Negotiate ${encode(text)}` })

/** Takes tokens of the form `name` (one step), or `name 1`, `name 2`, ... up to the steps that are asked for. */
function createAcceptor(steps = 1): NegotiateAcceptor & { begun: number } {
  const acceptor = (): ReturnType<NegotiateAcceptor> => {
    acceptor.begun++
    let step = 0
    return {
      async step(value): Promise<NegotiationStep> {
        const [name = '', number] = Buffer.from(value, 'base64').toString().split(' ')
        if (steps > 1 && Number(number) !== ++step) return { outcome: 'rejected', reason: 'out of order' }
        if (name === 'nobody') return { outcome: 'rejected', reason: 'nobody' }
        if (name === 'down') throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '9' } })
        if (step < steps && steps > 1) return { outcome: 'continue', token: encode(`go on ${step}`) }
        return { outcome: 'complete', name: `${name}@TEST`, ...(name === 'mute' ? {} : { token: encode('it is me') }) }
      },
    }
  }
  acceptor.begun = 0
  return acceptor
}

describe('negotiate', () => {
  it('asks with the bare scheme (RFC 4559 §4.1, row N1)', async () => {
    const { status, challenges } = await (await serve({ acceptor: createAcceptor() })).send()
    expect([status, challenges]).toEqual([401, ['Negotiate']])
  })

  it('sends the token that proves who we are with the answer (RFC 4559 §4.1, row N1)', async () => {
    const { send } = await serve({ acceptor: createAcceptor() })
    const answer = await send({ headers: token('ada') })
    expect(answer.principal).toEqual({ scheme: 'negotiate', id: 'ada@TEST' })
    expect(answer.challenges).toEqual([`Negotiate ${encode('it is me')}`])
    expect(answer.headers['persistent-auth']).toBe('false')
    expect((await send({ headers: token('mute') })).challenges).toEqual([])
  })

  it('goes through several steps on one connection (row N1)', async () => {
    const acceptor = createAcceptor(3)
    const { send } = await serve({ acceptor })
    const agent = connection()
    const first = await send({ agent, headers: token('ada 1') })
    expect([first.status, first.challenges]).toEqual([401, [`Negotiate ${encode('go on 1')}`]])
    expect((await send({ agent, headers: token('ada 2') })).challenges).toEqual([`Negotiate ${encode('go on 2')}`])
    expect((await send({ agent, headers: token('ada 3') })).principal?.id).toBe('ada@TEST')
    expect(acceptor.begun).toBe(1)
  })

  it('takes no step on another connection', async () => {
    const { send } = await serve({ acceptor: createAcceptor(2) })
    await send({ agent: connection(), headers: token('ada 1') })
    const other = await send({ agent: connection(), headers: token('ada 2') })
    expect([other.status, other.challenges]).toEqual([401, ['Negotiate']])
  })

  it('begins anew after a step that failed', async () => {
    const { send } = await serve({ acceptor: createAcceptor(2) })
    const agent = connection()
    await send({ agent, headers: token('ada 1') })
    expect((await send({ agent, headers: token('ada 9') })).challenges).toEqual(['Negotiate'])
    await send({ agent, headers: token('ada 1') })
    expect((await send({ agent, headers: token('ada 2') })).status).toBe(200)
  })

  it('takes eight steps and no more', async () => {
    for (const [steps, expected] of [
      [8, 200],
      [9, 401],
    ] as const) {
      const { send, close } = await serve({ acceptor: createAcceptor(steps) })
      const agent = connection()
      let status = 0
      for (let i = 1; i <= steps; i++) ({ status } = await send({ agent, headers: token(`ada ${i}`) }))
      expect(status).toBe(expected)
      await close()
      guarded = undefined
    }
  })

  it('does not know the user on the next request of a connection (row N2)', async () => {
    const { send } = await serve({ acceptor: createAcceptor() })
    const agent = connection()
    expect((await send({ agent, headers: token('ada') })).status).toBe(200)
    expect((await send({ agent })).status).toBe(401)
  })

  it.each([
    { 'X-Forwarded-For': '1.2.3.4' },
    { 'X-Forwarded-Proto': 'https' },
    { Forwarded: 'for=1.2.3.4' },
    { Via: '1.1 proxy' },
  ])('is refused behind a proxy, %j, unless that is trusted (RFC 4559 §6, row N2)', async (fields) => {
    const refused = await serve({ acceptor: createAcceptor() })
    const answer = await refused.send({ headers: { ...token('ada'), ...fields } as Record<string, string> })
    expect([answer.status, answer.challenges]).toEqual([401, ['Negotiate']])
    await refused.close()
    const trusted = await serve({ acceptor: createAcceptor(), proxies: 'trusted' })
    expect((await trusted.send({ headers: { ...token('ada'), ...fields } as Record<string, string> })).status).toBe(200)
  })

  it('is not offered behind a proxy where something else is', async () => {
    guarded = await serveGuarded({
      schemes: [negotiate({ acceptor: createAcceptor() }), basic({ accounts: { a: 'b' } })],
    })
    expect((await guarded.send()).challenges).toEqual(['Negotiate', expect.stringMatching(/^Basic /)])
    expect((await guarded.send({ headers: { Via: '1.1 proxy' } })).challenges).toEqual([
      expect.stringMatching(/^Basic /),
    ])
  })

  it('is refused over HTTP/2', async () => {
    const guard = auth({ schemes: [negotiate({ acceptor: createAcceptor() }), basic({ accounts: { a: 'b' } })] })
    const server = createServer((req, res) => guard(req, res, () => res.end(principalOf(req)?.id ?? '')))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const stream = client.request({ ':path': '/', authorization: `Negotiate ${encode('ada')}` })
    const [headers] = await once(stream, 'response')
    expect(headers[':status']).toBe(401)
    expect(headers['www-authenticate']).toMatch(/^Basic [^,]*, charset="UTF-8"$/)
    stream.resume()
    await once(stream, 'close')
    client.close()
    server.close()
    await once(server, 'close')
  })

  it.each(['', '!', 'YWR', 'YWRh=', encode('ada').replace(/=+$/, '') === encode('ada') ? 'YQ' : '', 'YWRh YWRh'])(
    'takes %j for no token',
    async (value) => {
      const acceptor = createAcceptor()
      const { send } = await serve({ acceptor })
      expect((await send({ headers: { Authorization: `Negotiate ${value}` } })).status).toBe(401)
      expect(acceptor.begun).toBe(0)
    },
  )

  it('is 401 for a ticket that is refused, and 503 when it cannot be verified', async () => {
    const { send } = await serve({ acceptor: createAcceptor() })
    expect((await send({ headers: token('nobody') })).status).toBe(401)
    const down = await send({ headers: token('down') })
    expect([down.status, down.headers['retry-after']]).toEqual([503, '9'])
  })

  it('refuses a user whom the acceptor does not name', async () => {
    for (const name of ['', undefined]) {
      const step = (): NegotiationStep => ({ outcome: 'complete', name: name as string })
      const { send, close, failures } = await serve({ acceptor: () => ({ step }) })
      expect([(await send({ headers: token('ada') })).status, failures.length]).toEqual([500, 1])
      await close()
    }
    guarded = undefined
  })

  it('asks who a name is to us', async () => {
    const principal = async (name: string) => (name === 'ada@TEST' ? { id: 'ada', claims: { role: 'x' } } : false)
    const { send } = await serve({ acceptor: createAcceptor(), principal })
    const answer = await send({ headers: token('ada') })
    expect(answer.principal).toEqual({ scheme: 'negotiate', id: 'ada', claims: { role: 'x' } })
    expect((await send({ headers: token('bob') })).status).toBe(401)
  })

  it.each<[string, object]>([
    ['no acceptor', {}],
    ['an acceptor that is none', { acceptor: {} }],
    ['a word about proxies that it does not know', { acceptor: () => {}, proxies: 'yes' }],
    ['an option that does not exist', { acceptor: () => {}, service: 'HTTP' }],
  ])('is not made with %s', (_, options) => {
    expect(() => negotiate(options as NegotiateOptions)).toThrow(TypeError)
  })
})

describe('kerberosAcceptor', () => {
  it.each<object>([{ service: '' }, { service: 'HTTP@' }, { service: 'HTTP/host' }, { servise: 'HTTP' }])(
    'is not made with %j',
    (options) => {
      expect(() => kerberosAcceptor(options as KerberosAcceptorOptions)).toThrow(TypeError)
    },
  )

  it('reports to the operator what only the operator can mend: no package, no keytab, no key', async () => {
    const { send, failures } = await serve({ acceptor: kerberosAcceptor({ service: 'HTTP@no-such-host.invalid' }) })
    const answer = await send({ headers: token('ada') })
    expect(answer.status).toBe(500)
    expect(failures).toHaveLength(1)
  })
})
