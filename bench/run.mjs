// Interleaved rounds over every peer and workload; see README.md.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureData } from './lib/data.mjs'
import { createLauncher, fits, PEERS } from './lib/launch.mjs'
import { cpuBusy, cpuNs, output, peakMb, resetPeak, rssMb, sleep, stop, stopAll } from './lib/proc.mjs'
import { workloads } from './lib/workloads.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const { values: opt } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    peers: { type: 'string' },
    warmup: { type: 'string', default: '2' },
    connections: { type: 'string', default: '32' },
    'server-cpu': { type: 'string', default: '0' },
    'client-cpu': { type: 'string', default: '1' },
    nice: { type: 'string', default: '0' },
    retries: { type: 'string', default: '2' },
    noise: { type: 'string', default: '0.08' },
    uploads: { type: 'string' },
    'verify-only': { type: 'boolean' },
    json: { type: 'string' },
    'node-flags': { type: 'string', default: '' },
    list: { type: 'boolean' },
  },
})

if (opt.list) {
  for (const w of Object.values(workloads)) console.log(w.id.padEnd(6), w.title)
  console.log('peers:', Object.keys(PEERS).join(', '))
  process.exit(0)
}
const defaultPeers = ['raw', 'express', 'koa', 'fastify', 'project']
const peers = opt.peers ? opt.peers.split(',') : defaultPeers
// Its public schema is emptied: only in a database that was named.
if (peers.some((peer) => peer.endsWith('-postgres')) && !process.env.BENCH_POSTGRES) {
  console.error('The Postgres peers need BENCH_POSTGRES=postgres://...')
  process.exit(2)
}
for (const p of peers)
  if (!PEERS[p]) {
    console.error(`unknown peer ${p}`)
    process.exit(2)
  }
const wanted = opt.only ? opt.only.split(',') : null
const list = Object.values(workloads).filter(
  (w) => !wanted || wanted.some((k) => w.id === k || (/^[WG]\d+$/.test(k) && w.id.replace(/^([WG]\d+).*/, '$1') === k)),
)

const data = path.join(here, 'data')
const out = path.join(here, 'out')
fs.mkdirSync(out, { recursive: true })
const { files, keys } = ensureData(data)
const uploads =
  opt.uploads ?? fs.mkdtempSync(path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'bench-up-'))
fs.mkdirSync(uploads, { recursive: true })
process.on('exit', () => {
  if (!opt.uploads) fs.rmSync(uploads, { recursive: true, force: true })
})
const jwks = JSON.parse(fs.readFileSync(keys, 'utf8'))
const nice = Number(opt.nice)
const [sCpu, cCpu] = [opt['server-cpu'], opt['client-cpu']]
const { launch, luaFile, loader } = createLauncher({
  ...{ files, keys, uploads, out, nice, serverCpu: sCpu, clientCpu: cCpu },
  ...{ connections: Number(opt.connections), nodeFlags: opt['node-flags'] },
})

async function sample(run, w, seconds) {
  const pid = run.child.pid
  if (w.reset && PEERS[run.peer].file) {
    run.child.kill('SIGUSR2')
    await sleep(300)
  }
  // The versions have moved since the last run: ask for them again.
  if (w.cas) run.lua = luaFile(`${w.id}-${run.peer}.lua`, await w.requests({ port: run.port, weak: run.weak }))
  resetPeak(pid)
  const s0 = cpuBusy(sCpu),
    c0 = cpuBusy(cCpu),
    n0 = cpuNs(pid),
    t0 = performance.now()
  const client = loader(run, w, seconds)
  let clientNs = 0
  const poll = setInterval(() => {
    clientNs = Math.max(clientNs, cpuNs(client.pid))
  }, 100)
  const text = await output(client, (seconds + 60) * 1000)
  clearInterval(poll)
  const wall = (performance.now() - t0) / 1000
  const n1 = cpuNs(pid),
    s1 = cpuBusy(sCpu),
    c1 = cpuBusy(cCpu)
  const r = JSON.parse(/@@(\{.*\})/.exec(text)[1])
  const secs = r.us / 1e6
  const cpu = (n1 - n0) / 1e9
  return {
    requests: r.requests,
    rps: r.requests / secs,
    cpuUs: (cpu * 1e6) / r.requests,
    util: cpu / wall,
    client: clientNs / 1e9 / wall,
    foreign: Math.max(0, s1.busy - s0.busy - cpu) / wall,
    foreignClient: Math.max(0, c1.busy - c0.busy - clientNs / 1e9) / wall,
    steal: (s1.steal - s0.steal) / wall,
    bytes: r.bytes / r.requests,
    errors: r.connect + r.read + r.write + r.status + r.timeout,
    p50: r.p50 / 1000,
    p99: r.p99 / 1000,
    peak: peakMb(pid),
    rss: rssMb(pid),
  }
}

const median = (a) => {
  const s = [...a].sort((x, y) => x - y)
  const m = s.length >> 1
  return s.length % 2 ? s[m] : (s[m - 1] + s[m]) / 2
}
const fmt = (v, d = 0) => v.toLocaleString('en', { minimumFractionDigits: d, maximumFractionDigits: d })

function table(rows) {
  const w = rows[0].map((_, i) => Math.max(...rows.map((r) => String(r[i]).length)))
  return rows
    .map(
      (r, k) =>
        `| ${r.map((c, i) => (i ? String(c).padStart(w[i]) : String(c).padEnd(w[i]))).join(' | ')} |${k === 0 ? `\n|${w.map((n, i) => (i ? `${'-'.repeat(n + 1)}:` : `${'-'.repeat(n + 2)}`)).join('|')}|` : ''}`,
    )
    .join('\n')
}

const all = {}
const rounds = Number(opt.rounds),
  seconds = Number(opt.seconds)
for (const w of list) {
  console.log(`\n## ${w.id}: ${w.title}`)
  const runs = []
  for (const peer of peers) {
    if (!fits(peer, w)) continue
    let run
    try {
      run = { peer, ...(await launch(peer, w)), weak: [], samples: [] }
      run.seeded = rssMb(run.child.pid)
      const ctx = { peer, port: run.port, files, uploads, keys: jwks, weak: run.weak }
      await w.check(ctx)
      run.weak = [...new Set(ctx.weak)]
      if (w.requests) run.lua = luaFile(`${w.id}-${peer}.lua`, await w.requests(ctx))
      runs.push(run)
    } catch (e) {
      console.log(`${peer}: not timed: ${String(e.message).split('\n').slice(0, 6).join(' ')}`)
      if (run) await stop(run.child)
    }
  }
  if (opt['verify-only']) {
    for (const r of runs) console.log(`${r.peer}: ok${r.weak.length ? ` (weaker: ${r.weak.join('; ')})` : ''}`)
  } else {
    for (const run of runs) run.child.stdout?.resume()
    for (const run of runs) await sample(run, w, Number(opt.warmup))
    for (let k = 0; k < rounds; k++) {
      for (const run of runs) {
        let best = null
        for (let t = 0; t <= Number(opt.retries); t++) {
          const s = await sample(run, w, seconds)
          if (!best || s.foreign < best.foreign) best = s
          if (s.foreign <= Number(opt.noise)) break
        }
        best.round = k
        run.samples.push(best)
      }
    }
    const raw = runs.find((r) => r.peer === 'raw')
    const rows = [
      [
        'peer',
        'req/s',
        ...(w.mb ? ['MB/s'] : []),
        'x raw',
        'CPU us/req',
        'x raw (CPU)',
        ...(w.mb ? ['MB per CPU s'] : []),
        'p50 ms',
        'p99 ms',
        'peak MB',
        'cpu',
        'client',
        'foreign',
        'errors',
        'note',
      ],
    ]
    for (const run of runs) {
      const m = (f) => median(run.samples.map(f))
      const ratio = raw ? median(run.samples.map((s, i) => s.rps / raw.samples[i].rps)) : NaN
      const ratioCpu = raw ? median(run.samples.map((s, i) => raw.samples[i].cpuUs / s.cpuUs)) : NaN
      run.result = {
        rps: m((s) => s.rps),
        ratio,
        cpuUs: m((s) => s.cpuUs),
        ratioCpu,
        p50: m((s) => s.p50),
        p99: m((s) => s.p99),
        peak: Math.max(...run.samples.map((s) => s.peak)),
        seeded: run.seeded,
        bytes: m((s) => s.bytes),
      }
      const errors = run.samples.reduce((a, s) => a + s.errors, 0)
      rows.push([
        run.peer,
        fmt(run.result.rps),
        ...(w.mb ? [fmt(run.result.rps * w.mb)] : []),
        fmt(ratio, 2),
        fmt(run.result.cpuUs, 1),
        fmt(ratioCpu, 2),
        ...(w.mb ? [fmt((w.mb * 1e6) / run.result.cpuUs)] : []),
        fmt(run.result.p50, 2),
        fmt(run.result.p99, 2),
        fmt(run.result.peak),
        fmt(
          m((s) => s.util),
          2,
        ),
        fmt(
          m((s) => s.client),
          2,
        ),
        fmt(
          m((s) => s.foreign),
          2,
        ),
        errors,
        run.weak.join('; '),
      ])
    }
    console.log(table(rows))
    all[w.id] = Object.fromEntries(runs.map((r) => [r.peer, { ...r.result, weak: r.weak, samples: r.samples }]))
    if (opt.json) fs.writeFileSync(opt.json, JSON.stringify(all))
  }
  for (const run of runs) await stop(run.child)
}
stopAll()
