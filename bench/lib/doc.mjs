// Puts the table of ratios into docs/performance.md, between its two marks.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { workloads } from './workloads.mjs'

const START = '<!-- measured: start -->'
const END = '<!-- measured: end -->'

/** @param {string} file @param {Record<string, Record<string, { ratioCpu: number, cpuUs: number, p99: number }>>} results */
export function writeDoc(file, measured, peers, folder) {
  const results = remember(measured, path.join(folder, 'doc.json'))
  const columns = peers.filter((peer) => peer !== 'raw')
  const cell = (result) => (result === undefined ? '' : result.ratioCpu.toFixed(2))
  const rows = Object.entries(results).map(([id, byPeer]) => [
    `${id}: ${workloads[id].title}`,
    byPeer.raw?.cpuUs.toFixed(1) ?? '',
    ...columns.map((peer) => cell(byPeer[peer])),
  ])
  const head = ['workload', 'raw, us', ...columns]
  const table = [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...rows]
  const text = [
    START,
    '',
    `${os.cpus()[0].model.trim()}, ${os.cpus().length} processors, Node ${process.versions.node}, ` +
      `${new Date().toISOString().slice(0, 10)}, medians of the rounds; each workload from its last run with \`npm run bench -- --doc ../docs/performance.md\``,
    '',
    ...table.map((row) => `| ${row.join(' | ')} |`),
    '',
    END,
  ].join('\n')
  const old = fs.readFileSync(file, 'utf8')
  fs.writeFileSync(file, old.slice(0, old.indexOf(START)) + text + old.slice(old.indexOf(END) + END.length))
}

/** The last figures of every workload, those of this run included. */
function remember(measured, file) {
  const before = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {}
  const slim = Object.entries(measured).map(([id, byPeer]) => [
    id,
    Object.fromEntries(
      Object.entries(byPeer).map(([peer, { ratioCpu, cpuUs, p99 }]) => [peer, { ratioCpu, cpuUs, p99 }]),
    ),
  ])
  const all = { ...before, ...Object.fromEntries(slim) }
  fs.writeFileSync(file, JSON.stringify(all))
  return Object.fromEntries(Object.keys(workloads).flatMap((id) => (all[id] === undefined ? [] : [[id, all[id]]])))
}
