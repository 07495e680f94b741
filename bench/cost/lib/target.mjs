// A server of the built package in a process of its own, and what it takes. Run as a program it is that server.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = fileURLToPath(import.meta.url)
export const MEGABYTE = 1024 * 1024

/** Starts a server of one kind, over items of one size. */
export async function startTarget({ kind = 'http', items, size }) {
  const child = fork(here, [kind, String(items), String(size)], { execArgv: ['--expose-gc'] })
  const [{ port }] = await once(child, 'message')
  const call = async (method) => {
    child.send(method)
    const [answer] = await once(child, 'message')
    return answer
  }
  return {
    port,
    /** Bytes and processor time, after a forced collection. */
    measure: () => call('measure'),
    stop: () => child.kill(),
  }
}

async function serve(kind, items, size) {
  const dist = path.join(path.dirname(here), '../../../dist')
  const load = (file) => import(pathToFileURL(path.join(dist, file)).href)
  const [{ collection, createResourceService }, { memoryStore }, { koaMiddleware }] = await Promise.all(
    ['index.js', 'stores/memory.js', 'koa.js'].map(load),
  )
  const store = memoryStore()
  for (let i = 1; i <= items; i++) {
    const body = JSON.stringify({ id: i, text: 'x'.repeat(size) })
    await store.write(`/things/${i}`, { contentType: 'application/json', body }, { expect: 'any' })
  }
  const service = createResourceService(store, { resources: { '/things': collection() } })
  const server = await createHost(kind, service, koaMiddleware)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  let peak = 0
  const watch = () => {
    const { heapUsed, external } = process.memoryUsage()
    peak = Math.max(peak, heapUsed + external)
  }
  setInterval(watch, 20)
  process.on('message', () => {
    watch()
    globalThis.gc()
    const { heapUsed, external, rss } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    process.send({ held: heapUsed + external, peak, rss, cpu: (user + system) / 1000 })
  })
  process.send({ port: server.address().port })
}

async function createHost(kind, service, koaMiddleware) {
  if (kind === 'http2') return createHttp2Server(service)
  if (kind === 'express') {
    const { default: express } = await import('express')
    return createServer(express().use(service))
  }
  if (kind !== 'koa') return createServer(service)
  const { default: Koa } = await import('koa')
  return createServer(new Koa().use(koaMiddleware(service)).callback())
}

if (process.argv[1] === here) {
  const [kind, items, size] = process.argv.slice(2)
  await serve(kind, Number(items), Number(size))
}
