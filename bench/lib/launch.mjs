// The servers that are compared, and how each is started with its load.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { start } from './proc.mjs'

const here = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')

export const PEERS = {
  raw: { file: 'raw.mjs' },
  express: { file: 'express.mjs' },
  koa: { file: 'koa.mjs' },
  fastify: { file: 'fastify.mjs' },
  'express-auto': { file: 'express.mjs', kind: 'auto', env: { BENCH_AUTO_ETAG: '1' } },
  'koa-auto': { file: 'koa.mjs', kind: 'auto', env: { BENCH_AUTO_ETAG: '1' } },
  'fastify-auto': { file: 'fastify.mjs', kind: 'auto', env: { BENCH_AUTO_ETAG: '1' } },
  project: { file: 'project.mjs' },
  'project-all': { file: 'project.mjs', env: { BENCH_OPTIONS: 'all' } },
  'project-sqlite': { file: 'project.mjs', env: { BENCH_STORE: 'sqlite', BENCH_FILES_IN: 'store' } },
  'project-postgres': {
    file: 'project.mjs',
    env: { BENCH_STORE: process.env.BENCH_POSTGRES, BENCH_FILES_IN: 'store' },
  },
  'project-memory': { file: 'project.mjs', env: { BENCH_FILES_IN: 'store' } },
  'project-contents': { file: 'project.mjs', env: { BENCH_STORE: 'sqlite', BENCH_FILES_IN: 'contents' } },
  'project-express': { file: 'project.mjs', env: { PROJECT_MOUNT: 'express' } },
  'project-direct': { file: 'project.mjs', env: { PROJECT_MOUNT: 'express', BENCH_ATTACH: 'direct' } },
  'project-koa': { file: 'project.mjs', env: { PROJECT_MOUNT: 'koa' } },
  'raw-fields': { file: 'raw.mjs', env: { BENCH_FIELDS: '1' } },
  'fastify-fields': { file: 'fastify.mjs', env: { BENCH_FIELDS: '1' } },
  // A database each, hand-written: W1, W2, W4, W5.
  'raw-sqlite': { file: 'raw-sql.mjs', kind: 'sql', env: { BENCH_RAW_DB: 'sqlite' } },
  'raw-postgres': { file: 'raw-sql.mjs', kind: 'sql', env: { BENCH_RAW_DB: process.env.BENCH_POSTGRES } },
}

const SQL = ['W1', 'W2', 'W4', 'W5']

/** Whether a peer can do a workload. */
export const fits = (peer, w) => {
  const { kind } = PEERS[peer]
  return kind === undefined || (kind === 'sql' ? SQL.includes(w.id) : w.only?.[kind])
}

/**
 * @param {{ files: string, keys: string, uploads: string, out: string, serverCpu: string, clientCpu: string,
 *   connections: number, nice: number, nodeFlags: string }} settings
 */
export function createLauncher({ files, keys, uploads, out, serverCpu, clientCpu, connections, nice, nodeFlags }) {
  async function launch(peer, w) {
    const def = PEERS[peer]
    const flags = nodeFlags.split(' ').filter(Boolean)
    const child = start(serverCpu, process.execPath, [...flags, path.join(here, 'servers', def.file)], {
      nice,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        NODE_ENV: 'production',
        PROJECT_DIR: process.env.PROJECT_DIR ?? path.join(here, '..'),
        NODE_NO_WARNINGS: '1',
        BENCH_NAME: peer,
        BENCH_USERS: String(w.users ?? 1000),
        BENCH_DOCS: '100',
        BENCH_FILES: files,
        BENCH_UPLOADS: uploads,
        BENCH_KEYS: keys,
        ...def.env,
      },
    })
    let err = ''
    child.stderr.on('data', (d) => {
      err = (err + d).slice(-2000)
    })
    const port = await new Promise((res, rej) => {
      let text = ''
      const timer = setTimeout(() => rej(new Error(`${peer} did not start: ${err}`)), 60000)
      child.stdout.on('data', (d) => {
        text += d
        const m = /ready (\d+)/.exec(text)
        if (m) {
          clearTimeout(timer)
          res(Number(m[1]))
        }
      })
      child.on('exit', (c) => {
        clearTimeout(timer)
        rej(new Error(`${peer} exited ${c}: ${err}`))
      })
    })
    return { child, port }
  }

  const lua = (s) => JSON.stringify(s).replace(/\\u([0-9a-f]{4})/gi, (_, h) => `\\${parseInt(h, 16)}`)
  function luaFile(name, reqs) {
    const rows = reqs.map((r) => {
      const h = Object.entries(r.h ?? {})
        .map(([k, v]) => `[${lua(k)}]=${lua(v)}`)
        .join(',')
      return `{m=${lua(r.m)},p=${lua(r.p)},h={${h}},b=${r.b === undefined ? 'nil' : lua(r.b)},tag=${r.tag ? lua(r.tag) : 'nil'}}`
    })
    const file = path.join(out, name)
    fs.writeFileSync(file, `return {\n${rows.join(',\n')}\n}\n`)
    return file
  }

  function loader(run, w, seconds) {
    if (w.upload)
      return start(
        clientCpu,
        process.execPath,
        [
          path.join(here, 'lib/upload-client.mjs'),
          String(run.port),
          w.upload.path,
          String(w.upload.mib),
          String(seconds),
          String(w.upload.connections),
        ],
        { nice },
      )
    const c = w.connections ?? connections
    return start(
      clientCpu,
      'wrk',
      [
        '-t',
        String(w.threads ?? 1),
        '-c',
        String(c),
        '-d',
        `${Math.max(1, Math.round(seconds))}s`,
        '--timeout',
        '10s',
        '-s',
        path.join(here, 'lua/replay.lua'),
        `http://127.0.0.1:${run.port}`,
        '--',
        run.lua,
        w.cas ? 'cas' : 'replay',
      ],
      { nice },
    )
  }

  return { launch, luaFile, loader }
}
