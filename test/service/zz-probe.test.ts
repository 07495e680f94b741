import { readFileSync } from 'node:fs'
import { it } from 'vitest'
import { formatRequest } from '../support/ask.ts'
import { basicCredentials, bearerCredentials, startDemo } from '../support/demo.ts'
import { lintResponse } from '../support/lint-response.ts'
import { openRawClient } from '../wire/raw-client.ts'

it('probe', async () => {
  const script = JSON.parse(readFileSync('/tmp/read/script.json', 'utf8'))
  for (const name of process.env.HOSTS?.split(',') ?? ['plain']) {
    const demo = await startDemo(name, { prefix: process.env.PREFIX ?? '' })
    let etag = '',
      lm = '',
      loc = ''
    for (const r of script) {
      const sub = (s: string) =>
        s
          .replaceAll('$E', etag)
          .replaceAll('$L', lm)
          .replaceAll('$B', basicCredentials)
          .replaceAll('$T', bearerCredentials())
          .replaceAll('$LOC', loc)
      const client = await openRawClient(demo.port)
      const bytes = r.raw
        ? Buffer.from(sub(r.raw).replaceAll('\n', '\r\n'), 'latin1')
        : formatRequest({ method: r.m, target: sub(r.t), fields: r.f?.map(sub), body: r.b })
      client.send(bytes)
      console.log(
        `>>> [${name}] ` +
          (r.raw
            ? JSON.stringify(r.raw)
            : `${r.m ?? 'GET'} ${r.t.length > 200 ? r.t.slice(0, 50) + '…' + r.t.length : r.t} ${JSON.stringify(r.f ?? [])} ${r.b ?? ''}`),
      )
      try {
        const a = (await Promise.race([
          client.read(r.m),
          new Promise((_, j) => setTimeout(j, 2500, new Error('TIMEOUT'))),
        ])) as any
        console.log(
          `${a.status} ` +
            (process.env.SHORT ? '' : '\n') +
            a.fields
              .filter(([k]: any) =>
                process.env.SHORT
                  ? ![
                      'date',
                      'x-content-type-options',
                      'keep-alive',
                      'connection',
                      'cache-control',
                      'content-length',
                    ].includes(k)
                  : k !== 'date',
              )
              .map(([k, v]: any) => `  ${k}: ${v}`)
              .join(process.env.SHORT ? '' : '\n'),
        )
        if (a.body.length)
          console.log(
            '  | ' +
              a.body
                .toString()
                .slice(0, 300)
                .replace(/[^\x20-\x7e]/g, '·'),
          )
        const lint = lintResponse(r.m ?? 'GET', a)
        if (lint.length) console.log('  LINT ' + lint.join(' // '))
        const get = (n: string) => a.fields.find(([k]: any) => k === n)?.[1]
        if (r.save) {
          etag = get('etag') ?? etag
          lm = get('last-modified') ?? lm
        }
        if (get('location')) loc = get('location')
        if (get('connection') === 'close') {
          const rest = await Promise.race([client.readToEnd(), new Promise((r) => setTimeout(r, 2000, 'NOTCLOSED'))])
          if (String(rest) !== '') console.log('  REST ' + String(rest).slice(0, 200))
        } else {
          client.send(formatRequest({ method: 'OPTIONS', target: '*' }))
          const n = (await Promise.race([
            client.read('OPTIONS'),
            new Promise((_, j) => setTimeout(j, 2500, new Error('TIMEOUT2'))),
          ])) as any
          if (n.status !== 204) console.log('  SYNC ' + n.status)
        }
      } catch (e) {
        console.log('  !!! ' + (e as Error).message)
      }
      client.socket.destroy()
    }
    await demo.close()
  }
}, 120_000)
