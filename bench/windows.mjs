// Processor time in short windows, one peer after the other, so that a machine whose speed changes is as fast or as slow
// for all of them; see README.md.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureData } from './lib/data.mjs'
import { createLauncher, fits, PEERS } from './lib/launch.mjs'
import { cpuNs, sleep, start, stop, stopAll } from './lib/proc.mjs'
import { summarize } from './lib/summary.mjs'
import { workloads } from './lib/workloads.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const { values: opt } = parseArgs({
  options: {
    only: { type: 'string', default: 'W1,W2,W3r,W4,W5,W6m,W6j,W7,W8s' },
    peers: { type: 'string', default: 'raw,raw-fields,fastify,fastify-fields,project' },
    base: { type: 'string' },
    windows: { type: 'string', default: '40' },
    length: { type: 'string', default: '250' },
    warmup: { type: 'string', default: '3' },
    neighbour: { type: 'boolean', default: false },
    connections: { type: 'string', default: '32' },
    'server-cpu': { type: 'string', default: '0' },
    'client-cpu': { type: 'string', default: '1' },
    'node-flags': { type: 'string', default: '' },
    json: { type: 'string' },
  },
})
const peers = opt.peers.split(',')
for (const peer of peers)
  if (PEERS[peer] === undefined) {
    console.error(`unknown peer ${peer}`)
    process.exit(2)
  }
if (peers.some((peer) => peer.endsWith('-postgres')) && !process.env.BENCH_POSTGRES) {
  console.error('The Postgres peers need BENCH_POSTGRES=postgres://...')
  process.exit(2)
}
const base = opt.base ?? ['raw-fields', 'raw-sqlite', 'raw-postgres'].find((peer) => peers.includes(peer)) ?? peers[0]
const out = path.join(here, 'out')
fs.mkdirSync(out, { recursive: true })
const { files, keys } = ensureData(path.join(here, 'data'))
const uploads = fs.mkdtempSync(path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'bench-up-'))
process.on('exit', () => fs.rmSync(uploads, { recursive: true, force: true }))
const [serverCpu, clientCpu] = [opt['server-cpu'], opt['client-cpu']]
const { launch, luaFile, loader } = createLauncher({
  ...{ files, keys, uploads, out, serverCpu, clientCpu, nice: 0 },
  ...{ connections: Number(opt.connections), nodeFlags: opt['node-flags'] },
})

/** How many requests a server has counted. */
function countOf({ child }) {
  return new Promise((resolve) => {
    child.once('message', resolve)
    child.send('count')
  })
}

async function begin(peer, w) {
  const run = { peer, ...(await launch(peer, w)), weak: [], samples: [] }
  run.child.stdout.resume()
  const ctx = { peer, port: run.port, files, uploads, keys: JSON.parse(fs.readFileSync(keys, 'utf8')), weak: run.weak }
  await w.check(ctx)
  if (w.requests) run.lua = luaFile(`${w.id}-${peer}.lua`, await w.requests(ctx))
  return run
}

/** Lets the load of one peer run for a time; all others stand still. */
async function runFor(run, ms) {
  run.load.kill('SIGCONT')
  await sleep(ms)
  run.load.kill('SIGSTOP')
}

async function takeWindow(run, ms) {
  const requests = await countOf(run)
  const before = cpuNs(run.child.pid)
  await runFor(run, ms)
  await sleep(30) // answers to what has been sent already
  const after = cpuNs(run.child.pid)
  const count = (await countOf(run)) - requests
  return { requests: count, us: count === 0 ? Number.NaN : (after - before) / 1000 / count }
}

const RESET_EVERY = 10
const neighbours = opt.neighbour
  ? [...new Set([serverCpu, clientCpu])].map((cpu) =>
      start(cpu, process.execPath, [path.join(here, 'lib/neighbour.mjs')]),
    )
  : []
const results = {}
for (const id of opt.only.split(',')) {
  const w = workloads[id]
  if (w === undefined) throw new Error(`unknown workload ${id}`)
  const runs = []
  for (const peer of peers) if (fits(peer, w)) runs.push(await begin(peer, w))
  const seconds = Number(opt.warmup) * 2 + (Number(opt.windows) * (Number(opt.length) + 400) * runs.length) / 1000 + 60
  for (const run of runs) {
    run.load = loader(run, w, seconds)
    run.load.stdout.resume()
    await sleep(200)
    await runFor(run, Number(opt.warmup) * 1000)
  }
  for (let round = 0; round < Number(opt.windows); round++) {
    for (const run of runs) {
      if (w.reset && round % RESET_EVERY === RESET_EVERY - 1) {
        run.child.kill('SIGUSR2')
        await sleep(300)
      }
      run.samples.push(await takeWindow(run, Number(opt.length)))
    }
  }
  for (const run of runs) {
    run.load.kill('SIGKILL')
    await stop(run.child)
  }
  results[id] = summarize(runs, base)
  console.log(`\n## ${id}: ${w.title}\n`)
  console.log('| peer | us, median (quartiles) | us, fastest tenth | ratio, median | ratio, fastest tenth |')
  console.log('|---|---:|---:|---:|---:|')
  for (const [peer, r] of Object.entries(results[id])) {
    const spread = `${r.median.toFixed(1)} (${r.lower.toFixed(1)} to ${r.upper.toFixed(1)})`
    console.log(
      `| ${peer} | ${spread} | ${r.fastest.toFixed(1)} | ${r.ratio.toFixed(2)} | ${r.fastestRatio.toFixed(2)} |`,
    )
  }
}
for (const neighbour of neighbours) neighbour.kill('SIGKILL')
console.log(
  `\nRatios to ${base}: higher is better. ${opt.neighbour ? 'Beside a neighbour on each processor.' : 'Alone.'}`,
)
if (opt.json) fs.writeFileSync(opt.json, JSON.stringify({ neighbour: opt.neighbour, base, results }, null, 2))
stopAll()
process.exit(0)
