import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { runServer } from '../support/hosts.ts'
import { type GuardedHost, guardedHosts } from './guard-hosts.ts'
import { type Guard, guards } from './guards.ts'
import { isBelow, OUTSIDE, spellSecret } from './spellings.ts'

interface Sent {
  readonly target: string
  readonly fields: readonly string[]
}

/** Sends one request over a connection of its own. @returns the status; 0 when there was no answer */
type Send = (guard: Guard, request: Sent) => Promise<number>

function sendBytes(open: () => Socket): Send {
  return (guard, { target, fields }) =>
    new Promise((resolve) => {
      let text = ''
      const socket = open()
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0)))
      const { body } = guard
      const length = body === undefined ? [] : [`Content-Length: ${body.length}`]
      const lines = [`${guard.method} ${target} HTTP/1.1`, 'Host: host', 'Connection: close', ...fields, ...length]
      socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`, 'latin1'))
    })
}

function sendStreams(session: ClientHttp2Session): Send {
  return (guard, { target, fields }) =>
    new Promise((resolve) => {
      const headers = fields.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string])
      const stream = session.request({ ':method': guard.method, ':path': target, ...Object.fromEntries(headers) })
      let status = 0
      stream.on('response', (head) => {
        status = head[':status'] ?? 0
      })
      stream.on('error', () => {})
      stream.on('close', () => resolve(status))
      stream.resume().end(guard.body)
    })
}

interface Guarded {
  readonly send: Send
  /** Targets with which something behind the guard was reached. */
  readonly reached: { readonly by: 'route' | 'rest'; readonly target: string }[]
  close(): Promise<void>
}

async function start(host: GuardedHost, guard: Guard, prefix: string): Promise<Guarded> {
  const reached: Guarded['reached'] = []
  // A middleware sees the path below its mount.
  const server = await host.create(guard.create('/secret'), prefix, (by, target) => reached.push({ by, target }))
  const { port, close } = await runServer(server)
  if (host.protocol === 'http2') {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const closeBoth = (): Promise<void> => {
      session.close()
      return close()
    }
    return { send: sendStreams(session), reached, close: closeBoth }
  }
  const open = (): Socket =>
    host.protocol === 'https'
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect({ port, host: '127.0.0.1' })
  return { send: sendBytes(open), reached, close }
}

/** As many targets as the protocol can carry, and as are worth their time: all for one middleware, and each for some of the others. */
function sample(targets: readonly string[], { protocol }: GuardedHost, guard: Guard): readonly string[] {
  const place = guards.indexOf(guard)
  const step = (place === 0 ? 1 : 3) * (protocol === 'https' ? 4 : 1)
  const chosen = targets.filter((_, index) => index % step === place % step)
  return protocol === 'http2' ? chosen.filter((target) => /^[/*]/.test(target)) : chosen
}

async function forEach<Item>(items: readonly Item[], run: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.slice()
  const work = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: 8 }, work))
}

const REFUSALS = [400, 401, 403, 415, 428]

const cases = guardedHosts.flatMap((host) =>
  guards
    .filter(({ name }) => host.routesFirst !== true || name !== 'methodOverride')
    .filter(({ name }) => host.takesRoutes !== true || name !== 'patch with required')
    .filter(({ name }) => host.protocol !== 'https' || name !== 'requireHttps')
    .flatMap((guard) =>
      host.prefixes.map((prefix) => ({ host, guard, prefix, name: `${host.name}, "${prefix}": ${guard.name}` })),
    ),
)

describe('a middleware that refuses', () => {
  it.each(cases)('lets no spelling pass (RFC 3986 §6.2.2, RFC 9112 §3.2): $name', async ({ host, prefix, guard }) => {
    const guarded = await start(host, guard, prefix)
    try {
      const secret = `${prefix}/secret`
      expect(REFUSALS).toContain(await guarded.send(guard, { target: secret, fields: guard.refused }))
      await forEach(sample(spellSecret(prefix), host, guard), async (target) => {
        await guarded.send(guard, { target, fields: guard.refused })
      })
      const isSecret = ({ by, target }: Guarded['reached'][number]): boolean => {
        if (guard.isByPath === true) return by === 'route' && target === target.toLowerCase()
        return prefix === '' || by === 'route' || isBelow(target, prefix)
      }
      expect(guarded.reached.filter(isSecret)).toEqual([])

      guarded.reached.length = 0
      if (guard.passing !== undefined) {
        await guarded.send(guard, { target: secret, fields: guard.passing })
        expect(guarded.reached).toHaveLength(1)
      }
      if (prefix === '') return
      // Connect takes a point for the end of a mount.
      const outside = OUTSIDE.filter((target) => (host.name.startsWith('Connect') ? !target.startsWith('/api.') : true))
      await forEach(sample(outside, host, guard), async (target) => {
        const answer = [target, await guarded.send(guard, { target, fields: guard.refused })]
        expect([
          [target, 200],
          [target, 404],
        ]).toContainEqual(answer)
      })
    } finally {
      await guarded.close()
    }
  })
})
