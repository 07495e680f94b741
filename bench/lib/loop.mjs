// One server and its client in one process: sends requests in turn over one connection, as many as it is asked for.
// Arguments: the file of the server, the workload, the number of requests.
import net from 'node:net'
import path from 'node:path'
import { workloads } from './workloads.mjs'

const [file, id, count] = process.argv.slice(2)
// A clock of its own: a request takes 0.1 ms. By the other clock, under valgrind and on a busy machine, each request would be
// of another second, and would pay for the text of its date: 10,000 instructions.
let now = Date.now()
Date.now = () => Math.floor(now)
const w = workloads[id]
const port = await new Promise((resolve) => {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = (text, ...rest) => {
    const found = /^ready (\d+)/.exec(text)
    if (found === null) return write(text, ...rest)
    process.stdout.write = write
    resolve(Number(found[1]))
    return true
  }
  import(path.resolve(file)).catch((error) => {
    console.error(error)
    process.exit(1)
  })
})
// What was stored is not of this second.
now += 10_000
const requests = await w.requests({ port, weak: [] })
const format = ({ m, p, h = {}, b }, tag) => {
  const fields = { Host: '127.0.0.1', ...h, ...(tag && { 'If-Match': tag }) }
  if (b !== undefined) fields['Content-Length'] = Buffer.byteLength(b)
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${m} ${p} HTTP/1.1\r\n${head.join('')}\r\n${b ?? ''}`
}
const texts = requests.map((request) => format(request))
const tags = requests.map(({ tag }) => tag)
const socket = net.connect(port, '127.0.0.1')
socket.setEncoding('latin1')
let sent = 0
let answer = ''

function send() {
  const at = sent++ % texts.length
  now += 0.1
  socket.write(w.cas ? format(requests[at], tags[at]) : texts[at])
}

/** Whether the response is whole; of a body, its length must be stated. */
function isWhole() {
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  // Without content: what a search in vain takes would depend on the length of the header section.
  if (/^HTTP\/1\.1 (?:204|304)/.test(answer)) return true
  const length = /\r\ncontent-length: (\d+)/i.exec(answer)?.[1] ?? '0'
  return answer.length >= end + 4 + Number(length)
}

socket.on('data', (text) => {
  answer += text
  if (!isWhole()) return
  if (!/^HTTP\/1\.1 [23]/.test(answer)) throw new Error(answer.slice(0, 300))
  if (w.cas) tags[(sent - 1) % tags.length] = /\r\netag: ([^\r]+)/i.exec(answer)[1]
  answer = ''
  if (sent === Number(count)) process.exit()
  send()
})
send()
