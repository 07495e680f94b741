// Large content of fileContents through the service, beside `createReadStream(file).pipe(res)`: npm run bench:contents
// Each round asks both servers in turn, so that a busy machine slows both; the figures are medians.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const SIZE = 256 * 1024 * 1024
const RANGE = { first: 100_000_001, last: 100_000_000 + 64 * 1024 * 1024 }
const ROUNDS = Number(process.env.ROUNDS ?? 15)

const [, , role, folder] = process.argv
if (role === undefined) await measure()
else await serve(role, folder)

async function serve(role, folder) {
  const listener = role === 'raw' ? serveFile(path.join(folder, 'raw.bin')) : await createService(folder)
  const server = http.createServer(listener)
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
  process.on('message', () => process.send({ cpu: process.cpuUsage() }))
  process.on('disconnect', () => process.exit())
}

function serveFile(file) {
  return (req, res) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(req.headers.range ?? '') ?? []
    const [start, end] = first === undefined ? [0, SIZE - 1] : [Number(first), Number(last)]
    res.writeHead(first === undefined ? 200 : 206, { 'Content-Length': end - start + 1 })
    fs.createReadStream(file, { start, end }).pipe(res)
  }
}

async function createService(folder) {
  const [{ createResourceService }, { sqliteStore }, { fileContents }, { default: Database }] = await Promise.all([
    import('../dist/index.js'),
    import('../dist/stores/sqlite.js'),
    import('../dist/contents/file.js'),
    import('libsql'),
  ])
  const contents = fileContents({ directory: path.join(folder, 'contents') })
  const store = sqliteStore(new Database(path.join(folder, 'states.db')), { contents })
  const body = fs.createReadStream(path.join(folder, 'raw.bin'))
  await store.write('/large', { contentType: 'application/octet-stream', body }, { expect: 'any' })
  return createResourceService(store)
}

async function measure() {
  const folder = fs.mkdtempSync(path.join(process.env.TMPDIR ?? os.tmpdir(), 'bench-contents-'))
  fs.writeFileSync(path.join(folder, 'raw.bin'), Buffer.alloc(SIZE, 'x'))
  const servers = {}
  try {
    for (const role of ['raw', 'service']) {
      const child = fork(fileURLToPath(import.meta.url), [role, folder])
      const [{ port }] = await once(child, 'message')
      servers[role] = { child, port }
    }
    for (const [name, headers, bytes] of [
      ['whole file', {}, SIZE],
      ['range', { Range: `bytes=${RANGE.first}-${RANGE.last}` }, RANGE.last - RANGE.first + 1],
    ]) {
      await compare(name, headers, bytes, servers)
    }
  } finally {
    for (const { child } of Object.values(servers)) child.disconnect()
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

async function compare(name, headers, bytes, servers) {
  const times = { raw: [], service: [] }
  const costs = { raw: [], service: [] }
  for (let round = -2; round < ROUNDS; round++) {
    for (const role of round % 2 === 0 ? ['raw', 'service'] : ['service', 'raw']) {
      const before = await cpuOf(servers[role].child)
      const begin = performance.now()
      const length = await download(servers[role].port, headers)
      const time = performance.now() - begin
      if (length !== bytes) throw new Error(`${role} sent ${length} bytes instead of ${bytes}.`)
      const cost = (await cpuOf(servers[role].child)) - before
      if (round >= 0) {
        times[role].push(time)
        costs[role].push(cost)
      }
    }
  }
  const rate = (role) => bytes / 1_048_576 / (median(times[role]) / 1000)
  const speed = median(times.raw.map((time, round) => time / times.service[round]))
  const cost = median(costs.raw) / median(costs.service)
  console.log(
    `${name}: raw ${rate('raw').toFixed(0)} MiB/s, service ${rate('service').toFixed(0)} MiB/s, ` +
      `${speed.toFixed(2)} of raw; processor time per byte: ${cost.toFixed(2)} of raw`,
  )
}

async function cpuOf(child) {
  child.send('cpu')
  const [{ cpu }] = await once(child, 'message')
  return cpu.user + cpu.system
}

async function download(port, headers) {
  const req = http.get({ port, host: '127.0.0.1', path: '/large', headers, agent: false })
  const [res] = await once(req, 'response')
  let length = 0
  res.on('data', (chunk) => {
    length += chunk.length
  })
  await once(res, 'end')
  return length
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1]
}
