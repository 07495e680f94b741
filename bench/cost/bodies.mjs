// What request content may cost: processor time and bytes, no wall clock. Each row is an attack with its bound.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const SERVER = fileURLToPath(new URL('./servers/bodies.mjs', import.meta.url))
const MIB = 1024 * 1024
const RUNS = 3
/** A bound of 2 passes up to 2.5: collectors and compilers run when they like. */
const MARGIN = 1.25

/** Runs `use` with a server of its own. */
async function withServer(use) {
  const child = fork(SERVER, { execArgv: ['--expose-gc'], stdio: 'inherit' })
  try {
    const [port] = await once(child, 'message')
    const ask = async (question) => {
      child.send(question)
      return (await once(child, 'message'))[0]
    }
    return await use({ port, ask })
  } finally {
    child.disconnect()
    await once(child, 'exit')
  }
}

/** A request whose content comes in chunks of `size` bytes; in one piece, with its length, without a size. */
function write(line, fields, content, size) {
  const length = size === undefined ? `Content-Length: ${content.length}` : 'Transfer-Encoding: chunked'
  const head = Buffer.from([`${line} HTTP/1.1`, 'Host: localhost', ...fields, length, '', ''].join('\r\n'))
  if (size === undefined) return Buffer.concat([head, content])
  const count = Math.ceil(content.length / size)
  const wire = Buffer.allocUnsafe(head.length + content.length + count * (size.toString(16).length + 4) + 5)
  let at = head.copy(wire)
  for (let from = 0; from < content.length; from += size) {
    const chunk = content.subarray(from, from + size)
    at += wire.write(`${chunk.length.toString(16)}\r\n`, at, 'latin1')
    wire.set(chunk, at)
    at += chunk.length
    at += wire.write('\r\n', at, 'latin1')
  }
  at += wire.write('0\r\n\r\n', at, 'latin1')
  return wire.subarray(0, at)
}

/** Sends a request, reads the whole answer and closes the connection. */
async function send(port, wire) {
  const socket = connect(port, '127.0.0.1')
  socket.write(wire)
  const [first] = await once(socket, 'data')
  const status = Number(first.toString('latin1', 9, 12))
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(first.toString('latin1'))?.[1] ?? 0)
  let rest = length - (first.length - first.indexOf('\r\n\r\n') - 4)
  while (rest > 0) {
    const [chunk] = await once(socket, 'data')
    rest -= chunk.length
  }
  socket.destroy()
  if (status >= 300) throw new Error(`${wire.toString('latin1', 0, 40)}: ${status}`)
}

/** The lowest processor time of some runs, in milliseconds: whatever else happens only adds to it. */
async function costOf({ port, ask }, wire) {
  let lowest = Number.POSITIVE_INFINITY
  for (let i = 0; i < RUNS; i++) {
    const before = await ask('cpu')
    await send(port, wire)
    lowest = Math.min(lowest, (await ask('cpu')) - before)
  }
  return lowest
}

/** JSON of `size` bytes: strings of about 100 characters. */
function jsonOf(size) {
  const item = `"${'x'.repeat(97)}",`
  const text = `{"a":[${item.repeat(Math.floor((size - 200) / item.length))}`
  return Buffer.from(`${text}"${'y'.repeat(size - text.length - 4)}"]}`)
}

const BOUNDARY = 'b0undary'
function formOf(content) {
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n`
  return Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)])
}

const JSON_TYPE = ['Content-Type: application/json']
const JSON_READERS = [
  ['PUT /plain', JSON_TYPE],
  ['PUT /docs/1', JSON_TYPE],
  ['PUT /singleton', JSON_TYPE],
  ['POST /items', JSON_TYPE],
  ['POST /body-parse', JSON_TYPE],
  ['PATCH /patch', ['Content-Type: application/merge-patch+json']],
]

function ratioRow(name, line, fields, least, content, size, most = 2) {
  return {
    name: `${name}: ${line}`,
    run: () =>
      withServer(async (server) => {
        const bare = await costOf(server, write(`POST ${least}`, [], content, size))
        const cpu = await costOf(server, write(line, fields, content, size))
        const ratio = cpu / bare
        return {
          figures: { cpu: round(cpu), bare: round(bare), ratio: round(ratio) },
          bound: `${most} times the processor time of a bare node:http handler of the same chunks`,
          ok: ratio <= most * MARGIN,
        }
      }),
  }
}

function stallRow(line, fields) {
  return {
    name: `longest turn of the event loop, 8 MiB of JSON in chunks of 32 bytes: ${line}`,
    run: () =>
      withServer(async ({ port, ask }) => {
        const content = jsonOf(8 * MIB - 1)
        const wire = write(line, fields, content, 32)
        const parse = lowestOf(() => JSON.parse(content.toString()))
        let longest = Number.POSITIVE_INFINITY
        // The code of the first runs is still being compiled, in the midst of turns.
        for (let i = 0; i < 2 * RUNS; i++) {
          await ask('watch')
          await send(port, wire)
          longest = Math.min(longest, await ask('longest'))
        }
        const most = Math.max(50, 2.5 * parse)
        return {
          figures: { longest: round(longest), parse: round(parse) },
          bound: '50 ms of processor time, or 2.5 times JSON.parse of the whole',
          ok: longest <= most * MARGIN,
        }
      }),
  }
}

function memoryRow(line, fields, mebibytes) {
  return {
    name: `memory of ${mebibytes} MiB of JSON in chunks of 1 byte, before it is parsed: ${line}`,
    run: () =>
      withServer(async ({ port, ask }) => {
        const content = jsonOf(Math.floor(mebibytes * MIB))
        const wire = write(line, fields, content, 1)
        const sent = wire.length - 64
        const before = await ask('held')
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => {})
        socket.write(wire.subarray(0, sent))
        while ((await ask('received')) < sent) await new Promise((resolve) => setTimeout(resolve, 50))
        const grown = (await ask('held')) - before
        socket.destroy()
        return {
          figures: { grown, content: content.length },
          bound: 'twice the content and 256 KiB',
          ok: grown <= 2 * content.length + 256 * 1024,
        }
      }),
  }
}

/** Documents of the most bytes and members that are let in, each of which is hard for another reason. */
const ITEMS = 99_000
const SIZE = 8 * MIB - 1024
const fill = (unit) => unit.repeat(Math.floor((SIZE - 100) / unit.length))
const items = (item) => `{"a":[${Array.from({ length: ITEMS }, (_, i) => item(i)).join()}]}`
const members = (name, value) =>
  `{${Array.from({ length: ITEMS }, (_, i) => `${JSON.stringify(name(i))}:${value(i)}`).join()}}`
const DOCUMENTS = {
  'short numbers': items(() => '1'),
  'long numbers': items(() => '1234567890123456789012345678901234567890e3'),
  'large numbers that are kept': items(() => '10000000000000000000000'),
  'short names': members(String, () => '1'),
  'long names': members(
    (i) => `${i}${'n'.repeat(60)}`,
    () => '"v"',
  ),
  'colons in names': members(
    (i) => `${i}:::`,
    () => '":"',
  ),
  'one string': `{"a":"${fill('x')}"}`,
  'one string of escaped quotes': `{"a":"${fill('\\"')}"}`,
  'one string of escaped backslashes': `{"a":"${fill('\\\\')}","n":1e22}`,
  'one string of Unicode escapes': `{"a":"${fill('\\u00e9')}"}`,
  'one string of surrogate pairs': `{"a":"${fill('\\ud83d\\ude00')}"}`,
  'one string of brackets': `{"a":"${fill('[{')}"}`,
  'one string of commas and colons': `{"a":"${fill(',:')}"}`,
  'one string beyond ASCII': `{"a":"${fill('é').slice(0, SIZE / 2 - 100)}"}`,
  'nested arrays': `{"a":[${Array(900)
    .fill('['.repeat(97) + ']'.repeat(97))
    .join()}]}`,
  blanks: `{"a":[${fill(' ')}]}`,
}

function documentRow(name, text) {
  return {
    name: `a document of ${name}: PUT, POST, and a small patch of it`,
    run: () =>
      withServer(async (server) => {
        const content = Buffer.from(text)
        const least = lowestOf(() => JSON.stringify(JSON.parse(content.toString())))
        const figures = { least: round(least) }
        const costs = {
          put: write('PUT /settings/1', JSON_TYPE, content),
          post: write('POST /items', JSON_TYPE, content),
          patch: write('PATCH /settings/1', ['Content-Type: application/merge-patch+json'], Buffer.from('{"b":1}')),
          test: write(
            'PATCH /settings/1',
            ['Content-Type: application/json-patch+json'],
            Buffer.from('[{"op":"remove","path":"/b"},{"op":"add","path":"/b","value":2}]'),
          ),
        }
        for (const [method, wire] of Object.entries(costs)) figures[method] = round(await costOf(server, wire))
        const most = Math.max(...Object.keys(costs).map((method) => figures[method]))
        return {
          figures,
          bound: 'four times JSON.parse and JSON.stringify of the document (20 ms are free)',
          ok: most <= 4 * least * MARGIN + 20,
        }
      }),
  }
}

function lowestOf(run) {
  let lowest = Number.POSITIVE_INFINITY
  for (let i = 0; i < RUNS; i++) {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    lowest = Math.min(lowest, (user + system) / 1000)
  }
  return lowest
}

function round(value) {
  return Math.round(value * 100) / 100
}

const FORM = [`Content-Type: multipart/form-data; boundary=${BOUNDARY}`]
const numbers = Buffer.from(JSON.stringify(Array.from({ length: 20_000 }, (_, i) => Math.sin(i))))

export default [
  ...JSON_READERS.map(([line, fields]) =>
    ratioRow('8 MiB of JSON in chunks of 32 bytes', line, fields, '/bare-parse', jsonOf(8 * MIB - 1), 32),
  ),
  ...JSON_READERS.map(([line, fields]) => stallRow(line, fields)),
  ...['POST /items', 'POST /body-parse'].map((line) =>
    ratioRow(
      'a file of 256 KiB in a form, in chunks of 1 byte',
      line,
      FORM,
      '/bare-join',
      formOf(Buffer.alloc(256 * 1024, 'x')),
      1,
    ),
  ),
  ...['PUT /docs/1', 'POST /body-parse'].map((line) =>
    ratioRow(
      'JSON with Content-Encoding: gzip in chunks of 1 byte',
      line,
      [...JSON_TYPE, 'Content-Encoding: gzip'],
      '/bare-join',
      gzipSync(numbers),
      1,
    ),
  ),
  // The largest content takes 12 s: once is enough, since all of them read it in the same way.
  ...JSON_READERS.map(([line, fields], i) => memoryRow(line, fields, i === 0 ? 7.9 : 1.9)),
  ...Object.entries(DOCUMENTS).map(([name, text]) => documentRow(name, text)),
]
