import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort, waitForPort } from './ports.ts'

/** A proxy that caches, in front of a server of the test. */
export interface RunningProxy {
  readonly port: number
  close(): Promise<void>
}

/** Starts a proxy. @param origin the port of the server behind it */
export type StartProxy = (program: string, origin: number) => Promise<RunningProxy>

async function start(create: (folder: string, port: number) => ChildProcess, end: NodeJS.Signals = 'SIGTERM') {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-'))
  // Started by root, a proxy gives its rights up and still writes here.
  chmodSync(folder, 0o777)
  const port = await findFreePort()
  const child = create(folder, port)
  const close = async () => {
    child.kill(end)
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await waitForPort(port, child)
  } catch (error) {
    await close()
    throw error
  }
  return { port, close }
}

/** nginx with servers of the test. @param configure the content of `http`, for a folder and a port of its own */
export const startNginxWith = (program: string, configure: (folder: string, port: number) => string) =>
  start((folder, port) => {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    const paths = temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off;
master_process off;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  ${paths}
  ${configure(folder, port)}
}
`,
    )
    return spawn(program, ['-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' })
  })

/**
 * nginx with proxy_cache. Below `/slices` it asks for one slice after the other, below `/gzip` it compresses and keeps
 * nothing.
 */
export const startNginx: StartProxy = (program, origin) =>
  startNginxWith(program, (folder, port) => {
    const pass = `proxy_pass http://127.0.0.1:${origin}`
    return `proxy_cache_path ${folder}/cache keys_zone=cache:1m;
  proxy_http_version 1.1;
  client_max_body_size 0;
  server {
    listen 127.0.0.1:${port};
    location / { ${pass}; proxy_cache cache; proxy_cache_revalidate on; }
    location /slices/ {
      ${pass}; proxy_cache cache; slice 64k; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range;
    }
    location /gzip/ { ${pass}; gzip on; gzip_types text/plain; gzip_proxied any; gzip_min_length 1; }
  }`
  })

/** Varnish with a place for its files. @param listArguments where it listens, and what is behind it */
const startVarnishWith = (program: string, listArguments: (folder: string, port: number) => readonly string[]) =>
  start((folder, port) => {
    mkdirSync(join(folder, 'work'), { mode: 0o777 })
    const places = [...listArguments(folder, port), '-n', join(folder, 'work')]
    return spawn(program, ['-F', ...places, '-s', 'malloc,32m'], { stdio: 'ignore' })
  })

/** Varnish as it comes, except that what is stale is asked for again before it is given. */
export const startVarnish: StartProxy = (program, origin) =>
  startVarnishWith(program, (_, port) => {
    const parameters = ['default_grace=0', 'default_keep=3600'].flatMap((parameter) => ['-p', parameter])
    return ['-a', `127.0.0.1:${port}`, '-b', `127.0.0.1:${origin}`, ...parameters]
  })

/** Varnish with a configuration of a test. */
export const startVarnishConfigured = (program: string, configuration: string) =>
  startVarnishWith(program, (folder, port) => {
    const file = join(folder, 'test.vcl')
    writeFileSync(file, configuration)
    return ['-a', `127.0.0.1:${port}`, '-f', file]
  })

/** Squid as a reverse proxy that keeps what it stores in memory. */
export const startSquid: StartProxy = (program, origin) =>
  start((folder, port) => {
    writeFileSync(
      join(folder, 'squid.conf'),
      `http_port 127.0.0.1:${port} accel defaultsite=127.0.0.1 no-vhost
cache_peer 127.0.0.1 parent ${origin} 0 no-query originserver login=PASSTHRU
http_access allow all
cache_mem 32 MB
maximum_object_size_in_memory 4 MB
pid_filename ${folder}/pid
access_log none
cache_log ${folder}/cache.log
coredump_dir ${folder}
pinger_enable off
visible_hostname cache
shutdown_lifetime 0 seconds
`,
    )
    // Squid names its shared memory after the service.
    return spawn(program, ['-N', '-n', `test${port}`, '-f', join(folder, 'squid.conf')], { stdio: 'ignore' })
  })
