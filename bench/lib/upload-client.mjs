// Sends large request bodies back to back over a few connections for a while; prints one JSON line.
// usage: upload-client.mjs PORT PATH MIB SECONDS CONNECTIONS
import net from 'node:net'
import { multipartBody } from './data.mjs'

const [port, path, mib, seconds, conns] = process.argv.slice(2).map((v, i) => (i === 1 ? v : Number(v)))
const { body, contentType } = multipartBody({ fields: { title: 'A large upload' }, fileSize: mib * 1024 * 1024 })
const head = Buffer.from(
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${contentType}\r\nContent-Length: ${body.length}\r\n\r\n`,
)
let uploads = 0,
  bad = 0
const t0 = process.hrtime.bigint()
const until = t0 + BigInt(Math.round(seconds * 1e9))
let last = t0

function worker() {
  return new Promise((res, rej) => {
    const s = net.connect(port, '127.0.0.1')
    s.setNoDelay(true)
    s.on('error', rej)
    let text = ''
    const send = () => {
      text = ''
      s.write(head)
      s.write(body)
    }
    s.on('connect', send)
    s.on('data', (d) => {
      text += d.latin1Slice()
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const cl = /content-length: *(\d+)/i.exec(text)
      if (cl && text.length < end + 4 + Number(cl[1])) return
      if (!cl && /transfer-encoding: *chunked/i.test(text) && !text.endsWith('0\r\n\r\n')) return
      if (!/^HTTP\/1\.1 2/.test(text)) bad++
      uploads++
      last = process.hrtime.bigint()
      if (last < until) {
        if (/connection: *close/i.test(text)) {
          s.destroy()
          res(worker())
        } else send()
      } else {
        s.destroy()
        res()
      }
    })
  })
}
await Promise.all(Array.from({ length: conns }, worker))
console.log(
  `@@${JSON.stringify({ requests: uploads, us: Number((last - t0) / 1000n), bytes: uploads * body.length, status: bad, connect: 0, read: 0, write: 0, timeout: 0, p50: 0, p90: 0, p99: 0, max: 0 })}`,
)
