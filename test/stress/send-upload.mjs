// Sends one multipart upload of MIB mebibytes and prints the status and Location of the answer as JSON. A process of its
// own, so that its memory is not taken for the server's. Usage: send-upload.mjs PORT PATH MIB
import { once } from 'node:events'
import { request } from 'node:http'

const [port, path, mib] = process.argv.slice(2)
const block = Buffer.alloc(1024 * 1024, 'The quick brown fox jumps over the lazy dog.\r\n--')
const head = [
  '--b0undary',
  'Content-Disposition: form-data; name="title"',
  '',
  'A large upload',
  '--b0undary',
  'Content-Disposition: form-data; name="file"; filename="large.bin"',
  'Content-Type: application/octet-stream',
  '',
  '',
].join('\r\n')
const tail = '\r\n--b0undary--\r\n'

const outgoing = request({
  host: '127.0.0.1',
  port,
  path,
  method: 'POST',
  headers: {
    'Content-Type': 'multipart/form-data; boundary=b0undary',
    'Content-Length': head.length + Number(mib) * block.length + tail.length,
  },
})
const answered = once(outgoing, 'response')
outgoing.write(head)
for (let sent = 0; sent < Number(mib); sent++) if (!outgoing.write(block)) await once(outgoing, 'drain')
outgoing.end(tail)
const [response] = await answered
response.resume()
console.log(JSON.stringify({ status: response.statusCode, location: response.headers.location }))
