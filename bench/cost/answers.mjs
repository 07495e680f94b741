// Answers that are asked for and not read.
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { MEGABYTE, startTarget } from './lib/target.mjs'

const format = (bytes) => `${(bytes / MEGABYTE).toFixed(1)} MiB`

/** Runs an attack, and compares the memory of the server before and after. */
async function measure(options, bound, attack) {
  const target = await startTarget(options)
  try {
    const before = await target.measure()
    const close = await attack(target.port)
    await wait(1500)
    const after = await target.measure()
    close()
    const held = after.held - before.held
    const peak = after.peak - before.held
    const cpu = after.cpu - before.cpu
    return {
      figures: `holds ${format(held)}, ${format(peak)} at most, ${Math.round(cpu)} ms of CPU`,
      bound: `holds at most ${format(bound.held)}, ${bound.cpu} ms`,
      ok: held <= bound.held && cpu <= bound.cpu,
    }
  } finally {
    target.stop()
  }
}

const list = (query) => `GET /things?${query} HTTP/1.1\r\nHost: a\r\n\r\n`

async function sendUnread(port, text) {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.pause()
  socket.write(text)
  return socket
}

/** Pages of many sizes: one that is asked for again would be made once, and shared. */
const limitOf = (i) => 100 + (i % 400)

/** 40 kB of requests for pages of up to 1 MB. */
const pipelined = (kind) => ({
  name: `40 kB of pipelined lists, not read, on ${kind}`,
  run: () =>
    measure({ kind, items: 500, size: 2000 }, { held: 24 * MEGABYTE, cpu: 3000 }, async (port) => {
      const requests = Array.from({ length: 900 }, (_, i) => list(`limit=${limitOf(i)}`)).join('')
      const socket = await sendUnread(port, requests)
      return () => socket.destroy()
    }),
})

const largePages = {
  name: '9 lists over 30 items of 4 MiB, not read',
  run: () =>
    measure({ items: 30, size: 4 * MEGABYTE }, { held: 16 * MEGABYTE, cpu: 3000 }, async (port) => {
      const sockets = []
      for (let i = 0; i < 9; i++) sockets.push(await sendUnread(port, list(`limit=30&n=${i}`)))
      return () => sockets.map((socket) => socket.destroy())
    }),
}

const hugePage = {
  name: 'a list over 70 items of 8 MiB, read',
  run: () =>
    measure({ items: 70, size: 8 * MEGABYTE - 100 }, { held: 48 * MEGABYTE, cpu: 6000 }, async (port) => {
      const answer = await fetch(`http://127.0.0.1:${port}/things?limit=70`)
      let length = 0
      for await (const chunk of answer.body) length += chunk.length
      if (answer.status !== 200 || length < 69 * 8 * MEGABYTE) throw new Error(`${answer.status}, ${length} bytes`)
      return () => {}
    }),
}

const streams = (size) => ({
  name: `HTTP/2, 600 streams with window 0, pages of ${format(size * 100)} and more`,
  run: () =>
    measure({ kind: 'http2', items: 500, size }, { held: 32 * MEGABYTE, cpu: 3000 }, async (port) => {
      const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } })
      session.on('error', () => {})
      await once(session, 'remoteSettings')
      for (let i = 0; i < 600; i++) {
        session.request({ ':path': `/things?limit=${limitOf(i)}` }).on('error', () => {})
      }
      return () => session.destroy()
    }),
})

export default [...['http', 'express', 'koa'].map(pipelined), largePages, hugePage, streams(2000), streams(20_000)]
