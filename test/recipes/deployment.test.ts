import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { run } from '../real/programs.ts'
import { readDockerfile } from '../support/dockerfile.ts'
import { startProxy } from '../support/pausable-proxy.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { type RunningRecipe, startRecipe } from '../support/recipes.ts'

let database: PostgresServer
beforeAll(async () => {
  database = await startPostgres()
})
afterAll(() => database.stop())

const startServer = (env: Record<string, string> = {}): Promise<RunningRecipe> =>
  startRecipe('server.mjs', { DATABASE_URL: database.connectionString, DRAIN_DELAY: '300', ...env })

/** A request whose content is complete only when `finish` is called. */
async function beginRequest(base: string): Promise<{ finish(): Promise<string> }> {
  const socket = connect(Number(new URL(base).port), '127.0.0.1')
  const content = '{"title":"Late"}'
  const head = `POST /notes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${content.length}\r\n\r\n`
  await new Promise((resolve) => socket.write(head + content.slice(0, 5), resolve))
  return {
    async finish() {
      socket.write(content.slice(5))
      const chunks: Buffer[] = await socket.toArray()
      return Buffer.concat(chunks).toString()
    },
  }
}

describe('examples/recipes/server.mjs', () => {
  it('is alive and ready, and on SIGTERM not ready, finishes what it has begun and ends with 0', async () => {
    const { base, send, program } = await startServer()
    expect((await send('GET', '/livez')).status).toBe(200)
    expect((await send('GET', '/readyz')).status).toBe(200)
    expect((await send('POST', '/notes', { json: { title: 'First' } })).status).toBe(201)
    const begun = await beginRequest(base)
    program.child.kill('SIGTERM')
    while ((await send('GET', '/readyz')).status === 200) await sleep(10)
    // The delay: it still serves those who do not know yet.
    expect((await send('GET', '/livez')).status).toBe(200)
    const late = await send('GET', '/notes/1')
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close'])
    await sleep(500)
    await expect(send('GET', '/livez')).rejects.toThrow('fetch failed')
    expect(await begun.finish()).toMatch(/^HTTP\/1\.1 201 Created\r\n(?:.*\r\n)*Connection: close\r\n/)
    expect(await program.ended).toBe(0)
  })

  it('is ready again after its connections have fallen silent under the probes', async () => {
    const { hostname, port, href } = new URL(database.connectionString)
    const proxy = await startProxy(Number(port))
    try {
      const { send } = await startServer({
        DATABASE_URL: href.replace(`${hostname}:${port}`, `127.0.0.1:${proxy.port}`),
      })
      const probe = async () => (await send('GET', '/readyz')).status
      const probeAll = () => Promise.all(Array.from({ length: 10 }, probe))
      expect(await probeAll()).toEqual(Array(10).fill(200))
      proxy.pause()
      expect(await probeAll()).toEqual(Array(10).fill(503))
      proxy.resume()
      expect(await probe()).toBe(200)
      expect((await send('GET', '/notes')).status).toBe(200)
    } finally {
      await proxy.close()
    }
  }, 30_000)

  it('ends on SIGTERM where idle connections to its database have fallen silent', async () => {
    const { hostname, port, href } = new URL(database.connectionString)
    const proxy = await startProxy(Number(port))
    try {
      const { send, program } = await startServer({
        DATABASE_URL: href.replace(`${hostname}:${port}`, `127.0.0.1:${proxy.port}`),
      })
      // Some for the sweep of the store, which is given up, and others that are idle.
      await Promise.all(Array.from({ length: 10 }, () => send('GET', '/notes')))
      proxy.pause()
      program.child.kill('SIGTERM')
      expect(await program.ended).toBe(0)
    } finally {
      await proxy.close()
    }
  }, 30_000)

  it('is alive but not ready without its database', async () => {
    const { send } = await startServer({ DATABASE_URL: 'postgres://postgres@127.0.0.1:1/postgres' })
    expect((await send('GET', '/livez')).status).toBe(200)
    expect((await send('GET', '/readyz')).status).toBe(503)
  })

  it('reads the addresses of its proxies from TRUST_PROXY', async () => {
    const { send } = await startServer({ TRUST_PROXY: '127.0.0.1,10.0.0.0/8' })
    const from = (scheme: string) => send('GET', '/notes', { headers: { 'X-Forwarded-Proto': scheme } })
    expect([(await from('https')).status, (await from('http')).status]).toEqual([200, 403])
  })
})

// There is no container engine here: what is checked is what the file names and what its commands do.
describe('examples/recipes/Dockerfile', () => {
  const docker = readDockerfile('examples/recipes/Dockerfile')
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }

  it('runs the program of the page, not as root, on a Node that the package supports', () => {
    const [, major] = /^node:(\d+)/.exec(docker.image)!
    expect(Number(major)).toBeGreaterThanOrEqual(Number(/\d+/.exec(manifest.engines.node)![0]))
    expect(docker.copied).toEqual(['package.json', 'package-lock.json', 'server.mjs'])
    expect(docker.run).toEqual(['npm ci --omit=dev'])
    expect(docker.command).toEqual(['node', 'server.mjs'])
    expect(docker.user).toBe('node')
  })

  it('has a health check that passes while the program serves, and only then', async () => {
    const { base, program } = await startServer()
    const [node, ...args] = docker.healthCheck.map((word) => word.replace('http://127.0.0.1:8080', base))
    expect(node).toBe('node')
    expect((await run(process.execPath, args)).code).toBe(0)
    await program.stop('SIGKILL')
    expect((await run(process.execPath, args)).code).toBe(1)
  })
})

describe('examples/recipes/kubernetes.yaml', () => {
  const [deployment, service] = parseAllDocuments(readFileSync('examples/recipes/kubernetes.yaml', 'utf8')).map(
    (document) => document.toJS(),
  )
  const { containers, terminationGracePeriodSeconds } = deployment.spec.template.spec
  const [container] = containers
  const env = new Map<string, string>(container.env.map(({ name, value }: Record<string, string>) => [name, value]))

  it('probes what the program answers, and leads to its port', async () => {
    const { send } = await startServer()
    for (const probe of [container.livenessProbe, container.readinessProbe]) {
      expect((await send('GET', probe.httpGet.path)).status).toBe(200)
      expect(probe.httpGet.port).toBe('http')
    }
    expect(container.ports).toEqual([{ name: 'http', containerPort: 8080 }])
    expect(service.spec.ports[0].targetPort).toBe('http')
    expect(service.spec.selector).toEqual(deployment.spec.selector.matchLabels)
    expect(service.spec.selector).toEqual(deployment.spec.template.metadata.labels)
  })

  it('names the variables that the program reads, and waits longer than it takes to stop', () => {
    const program = readFileSync('examples/recipes/server.mjs', 'utf8')
    for (const name of env.keys()) expect(program).toContain(`process.env.${name}`)
    const limit = Number(/closeAllConnections\(\), ([\d_]+)\)/.exec(program)![1]!.replace('_', ''))
    expect(Number(env.get('DRAIN_DELAY')) + limit).toBeLessThan(terminationGracePeriodSeconds * 1000)
  })
})

describe('examples/recipes/background-work.mjs', () => {
  it('does accepted work as jobs of pg-boss, also that of a process that has ended', async () => {
    const start = () => startRecipe('background-work.mjs', { DATABASE_URL: database.connectionString })
    const first = await start()
    const form = (text: string): FormData => {
      const body = new FormData()
      body.append('title', text)
      body.append('document', new Blob([text]), 'document.txt')
      return body
    }
    const upload = async ({ send }: RunningRecipe, text: string): Promise<string> => {
      const accepted = await send('POST', '/scans', { body: form(text) })
      expect(accepted.status).toBe(202)
      return accepted.headers.get('location')!
    }
    const untilReady = async ({ send }: RunningRecipe, path: string) => {
      for (;;) {
        const { value } = await send('GET', path)
        if (value.state !== 'pending') return value
        await sleep(50)
      }
    }
    const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
    const path = await upload(first, 'first')
    expect(await untilReady(first, path)).toMatchObject({ title: 'first', state: 'ready', sha256: sha256('first') })
    const left = await upload(first, 'second')
    await first.program.stop('SIGKILL')

    const second = await start()
    expect(await untilReady(second, left)).toMatchObject({ state: 'ready', sha256: sha256('second') })
    expect(await second.program.stop()).toBe(0)
  })
})
