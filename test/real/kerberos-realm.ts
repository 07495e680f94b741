import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort, waitForPort } from './ports.ts'
import { run } from './programs.ts'

export interface KerberosRealm {
  /** What programs need to find the realm, its keytab, and the tickets of one user. */
  readonly env: NodeJS.ProcessEnv
  addUser(name: string, password: string): Promise<void>
  /** Makes a key for a service and puts it into the keytab. */
  addService(name: string): Promise<void>
  /** Gets a ticket-granting ticket. @returns the variables with which programs find it */
  login(name: string, password: string): Promise<NodeJS.ProcessEnv>
  close(): Promise<void>
}

const NAME = 'EXAMPLE.TEST'

/** Starts a key distribution centre of its own, on a port of its own, in a folder of its own. */
export async function startKerberosRealm(programs: {
  readonly krb5kdc: string
  readonly kdb5Util: string
  readonly kadminLocal: string
  readonly kinit: string
}): Promise<KerberosRealm> {
  const folder = mkdtempSync(join(tmpdir(), 'kdc-'))
  const path = (name: string) => join(folder, name)
  const port = await findFreePort()
  writeFileSync(
    path('krb5.conf'),
    `[libdefaults]
default_realm = ${NAME}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
qualify_shortname = ""
[realms]
${NAME} = {
  kdc = 127.0.0.1:${port}
}
[domain_realm]
localhost = ${NAME}
`,
  )
  writeFileSync(
    path('kdc.conf'),
    `[kdcdefaults]
kdc_listen = 127.0.0.1:${port}
kdc_tcp_listen = 127.0.0.1:${port}
[realms]
${NAME} = {
  database_name = ${path('principal')}
  key_stash_file = ${path('stash')}
  max_life = 1h
}
[logging]
kdc = FILE:${path('kdc.log')}
`,
  )
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    KRB5_CONFIG: path('krb5.conf'),
    KRB5_KDC_PROFILE: path('kdc.conf'),
    KRB5_KTNAME: `FILE:${path('keytab')}`,
    KRB5RCACHENAME: `dfl:`,
    KRB5RCACHEDIR: folder,
  }

  async function mustRun(program: string, args: readonly string[], input = ''): Promise<void> {
    const { code, stderr } = await run(program, args, { env, input })
    if (code !== 0) throw new Error(`${program} ${args[0]} failed: ${stderr}`)
  }
  const administer = (query: string) => mustRun(programs.kadminLocal, ['-r', NAME, '-q', query])

  await mustRun(programs.kdb5Util, ['create', '-s', '-r', NAME, '-P', 'master'])
  const kdc = spawn(programs.krb5kdc, ['-n', '-r', NAME, '-P', path('pid')], { env, stdio: 'ignore' })
  await waitForPort(port, kdc)
  return {
    env,
    addUser: (name, password) => administer(`addprinc -pw ${password} ${name}`),
    async addService(name) {
      await administer(`addprinc -randkey ${name}`)
      await administer(`ktadd -k ${path('keytab')} ${name}`)
    },
    async login(name, password) {
      const tickets = { KRB5CCNAME: `FILE:${path(`tickets-${name}`)}` }
      const { code, stderr } = await run(programs.kinit, [name], {
        env: { ...env, ...tickets },
        input: `${password}\n`,
      })
      if (code !== 0) throw new Error(`kinit failed: ${stderr}`)
      return { ...env, ...tickets }
    },
    async close() {
      kdc.kill()
      if (kdc.exitCode === null && kdc.signalCode === null) await once(kdc, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
