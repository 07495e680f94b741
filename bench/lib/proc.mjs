// Processes: start them pinned, read their processor time and memory from /proc.

import { spawn } from 'node:child_process'
import fs from 'node:fs'

const read = (p) => {
  try {
    return fs.readFileSync(p, 'utf8')
  } catch {
    return ''
  }
}

function tree(pid) {
  const out = [pid]
  for (const t of dirs(`/proc/${pid}/task`)) {
    for (const c of read(`/proc/${pid}/task/${t}/children`).trim().split(/\s+/)) if (c) out.push(...tree(Number(c)))
  }
  return out
}
const dirs = (p) => {
  try {
    return fs.readdirSync(p)
  } catch {
    return []
  }
}

/** Nanoseconds on a processor so far, every thread and child together. */
export function cpuNs(pid) {
  let sum = 0
  for (const p of tree(pid))
    for (const t of dirs(`/proc/${p}/task`)) sum += Number(read(`/proc/${p}/task/${t}/schedstat`).split(' ')[0] || 0)
  return sum
}

const kb = (pid, key) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
export const rssMb = (pid) => kb(pid, 'VmRSS') / 1024
export const peakMb = (pid) => kb(pid, 'VmHWM') / 1024
export function resetPeak(pid) {
  try {
    fs.writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    /* not allowed: the peak is then since the start */
  }
}

/** Busy seconds of one processor so far, and seconds stolen by the hypervisor. */
export function cpuBusy(n) {
  const f = new RegExp(`^cpu${n} (.*)$`, 'm').exec(read('/proc/stat'))?.[1].split(' ').map(Number) ?? []
  const [user = 0, nice = 0, sys = 0, , , irq = 0, soft = 0, steal = 0] = f
  return { busy: (user + nice + sys + irq + soft) / 100, steal: steal / 100 }
}

const live = new Set()
export function start(cpu, cmd, args, { env = {}, stdio = ['ignore', 'pipe', 'pipe'], nice = 0 } = {}) {
  const argv = [...(nice ? ['nice', '-n', String(nice)] : []), 'taskset', '-c', String(cpu), cmd, ...args]
  const child = spawn(argv[0], argv.slice(1), { env: { ...process.env, ...env }, stdio })
  live.add(child)
  child.on('exit', () => live.delete(child))
  return child
}
export function stopAll() {
  for (const c of live) c.kill('SIGKILL')
}
process.on('exit', stopAll)
for (const s of ['SIGINT', 'SIGTERM'])
  process.on(s, () => {
    stopAll()
    process.exit(130)
  })

export function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((res) => {
    child.once('exit', res)
    child.kill('SIGKILL')
  })
}

export function output(child, limitMs) {
  return new Promise((res, rej) => {
    let out = '',
      err = ''
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      rej(new Error(`timed out: ${err.slice(-400)}`))
    }, limitMs)
    child.stdout.on('data', (d) => {
      out += d
    })
    child.stderr.on('data', (d) => {
      err += d
    })
    child.on('error', rej)
    child.on('close', (code) => {
      clearTimeout(timer)
      if (code) rej(new Error(`exit ${code}: ${err.slice(-400)}${out.slice(-400)}`))
      else res(out)
    })
  })
}
export const sleep = (ms) => new Promise((r) => setTimeout(r, ms))
