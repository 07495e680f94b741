// Instructions a request, counted by valgrind: small changes show in them that do not show in time; see README.md.
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { ensureData } from './lib/data.mjs'
import { PEERS } from './lib/launch.mjs'

const run = promisify(execFile)
const here = path.dirname(fileURLToPath(import.meta.url))
const { values: opt } = parseArgs({
  options: {
    only: { type: 'string', default: 'W1,W2,W4,W5,W7' },
    peers: { type: 'string', default: 'raw-fields,fastify-fields,project' },
    warmup: { type: 'string', default: '8000' },
    requests: { type: 'string', default: '4000' },
  },
})
const { files, keys } = ensureData(path.join(here, 'data'))
const uploads = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-up-'))
process.on('exit', () => fs.rmSync(uploads, { recursive: true, force: true }))

/** Instructions of a whole run: start, warm-up, and so many requests. */
async function count(peer, id, requests) {
  const { file, env } = PEERS[peer]
  const { stderr } = await run(
    'valgrind',
    [
      ...['--tool=cachegrind', '--cache-sim=no', '--cachegrind-out-file=/dev/null', '--smc-check=all-non-file'],
      // One thread, and no timing: what is compiled, and when, is the same in every run.
      ...[process.execPath, '--single-threaded', '--predictable', '--max-lazy'],
      ...[path.join(here, 'lib/loop.mjs'), path.join(here, 'servers', file), id, String(requests)],
    ],
    {
      env: {
        ...process.env,
        NODE_ENV: 'production',
        PROJECT_DIR: process.env.PROJECT_DIR ?? path.join(here, '..'),
        ...{ BENCH_NAME: peer, BENCH_USERS: '1000', BENCH_DOCS: '100', BENCH_FILES: files, BENCH_KEYS: keys },
        ...{ BENCH_UPLOADS: uploads, ...env },
      },
      maxBuffer: 1e8,
    },
  )
  return Number(/I\s+refs:\s+([\d,]+)/.exec(stderr)[1].replaceAll(',', ''))
}

const [warmup, requests] = [Number(opt.warmup), Number(opt.requests)]
for (const id of opt.only.split(',')) {
  const counts = []
  for (const peer of opt.peers.split(',')) {
    const before = await count(peer, id, warmup)
    const after = await count(peer, id, warmup + requests)
    counts.push([peer, (after - before) / requests])
  }
  const base = counts[0][1]
  for (const [peer, own] of counts) {
    console.log(`${id} ${peer.padEnd(16)} ${own.toFixed(0).padStart(8)} instructions, ${(own - base).toFixed(0)} more`)
  }
}
