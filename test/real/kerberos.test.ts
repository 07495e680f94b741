import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kerberosAcceptor, negotiate } from '../../src/auth-schemes/negotiate.ts'
import { type GuardedServer, serveGuarded } from '../auth-schemes/guarded-server.ts'
import { type KerberosRealm, startKerberosRealm } from './kerberos-realm.ts'
import { findPackage, findProgram, run } from './programs.ts'

const programs = ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit', 'curl'].map((name) => findProgram(name))
const [krb5kdc, kdb5Util, kadminLocal, kinit, curl] = programs
const isHere = krb5kdc && kdb5Util && kadminLocal && kinit && curl && findPackage('kerberos')

describe.runIf(isHere)('kerberosAcceptor, with a key distribution centre and curl', () => {
  let realm: KerberosRealm
  let guarded: GuardedServer
  const before: NodeJS.ProcessEnv = {}

  beforeAll(async () => {
    realm = await startKerberosRealm({
      krb5kdc: krb5kdc!,
      kdb5Util: kdb5Util!,
      kadminLocal: kadminLocal!,
      kinit: kinit!,
    })
    await realm.addUser('ada', 'secret')
    await realm.addUser('bob', 'secret')
    await realm.addService('HTTP/localhost')
    // The library of the system reads its settings from the environment of the process.
    for (const name of ['KRB5_CONFIG', 'KRB5_KTNAME', 'KRB5RCACHEDIR']) {
      before[name] = process.env[name]
      process.env[name] = realm.env[name]
    }
    guarded = await serveGuarded({
      schemes: [
        negotiate({
          acceptor: kerberosAcceptor({ service: 'HTTP@localhost' }),
          principal: (name) => name !== 'bob@EXAMPLE.TEST',
        }),
      ],
    })
  })

  afterAll(async () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    await guarded?.close()
    await realm?.close()
  })

  const ask = (env: NodeJS.ProcessEnv, ...args: readonly string[]) =>
    run(curl!, ['-s', '-i', '--negotiate', '-u', ':', ...args], { env })

  it('knows who has a ticket, on every request of a connection, and proves itself (RFC 4559 §4, row N1)', async () => {
    const url = `http://localhost:${guarded.port}/`
    const { code, stdout } = await ask(await realm.login('ada', 'secret'), `${url}a`, `${url}b`)
    expect(code).toBe(0)
    expect(stdout.match(/HTTP\/1.1 200/g)).toHaveLength(2)
    expect(stdout.match(/"id":"ada@EXAMPLE.TEST"/g)).toHaveLength(2)
    expect(stdout.match(/^WWW-Authenticate: Negotiate [A-Za-z0-9+/=]{100,}\r$/gm)).toHaveLength(2)
    expect(guarded.failures).toEqual([])
  })

  it('takes an upload after the challenge', async () => {
    const env = await realm.login('ada', 'secret')
    const { stdout } = await ask(
      env,
      '-X',
      'PUT',
      '--data-binary',
      'x'.repeat(5000),
      `http://localhost:${guarded.port}/`,
    )
    expect(stdout).toContain('"id":"ada@EXAMPLE.TEST"')
  })

  it('refuses a principal that is not known', async () => {
    const { stdout } = await ask(await realm.login('bob', 'secret'), `http://localhost:${guarded.port}/`)
    expect(stdout).toMatch(/^HTTP\/1.1 401/)
    expect(stdout).not.toContain('principal')
  })

  it('refuses a request without a ticket', async () => {
    const { stdout } = await ask({ ...realm.env, KRB5CCNAME: 'FILE:/nonexistent' }, `http://localhost:${guarded.port}/`)
    expect(stdout).toMatch(/^HTTP\/1.1 401/)
  })

  it('refuses a ticket that was used, one that was changed, and what is none', async () => {
    const tickets: string[] = []
    guarded.server.on('request', (req) => {
      if (req.headers.authorization !== undefined) tickets.push(req.headers.authorization)
    })
    await ask(await realm.login('ada', 'secret'), `http://localhost:${guarded.port}/`)
    const [ticket = ''] = tickets
    expect(ticket).toMatch(/^Negotiate /)
    const bytes = Buffer.from(ticket.slice(10), 'base64')
    bytes[bytes.length - 5]! ^= 1
    for (const Authorization of [
      ticket,
      `Negotiate ${bytes.toString('base64')}`,
      `Negotiate ${bytes.subarray(0, 20).toString('base64')}`,
      `Negotiate ${Buffer.from('NTLMSSP\0\x01\0\0\0').toString('base64')}`,
      `Negotiate ${Buffer.alloc(6000, 0x60).toString('base64')}`,
    ]) {
      const answer = await guarded.send({ headers: { Authorization } })
      expect([answer.status, answer.challenges]).toEqual([401, ['Negotiate']])
    }
    expect(guarded.failures).toEqual([])
  })

  it('reports a service that has no key here', async () => {
    const other = await serveGuarded({
      schemes: [negotiate({ acceptor: kerberosAcceptor({ service: 'HTTP@elsewhere.test' }) })],
    })
    const { stdout } = await ask(await realm.login('ada', 'secret'), `http://localhost:${other.port}/`)
    expect(stdout).toMatch(/^HTTP\/1.1 500/)
    expect(other.failures).toHaveLength(1)
    await other.close()
  })
})
