// Lets a program that listens on port 8080, as those of the documentation do, listen on a free port instead, and prints
// which one: node --import ./test/support/free-port.mjs program.mjs. Its own requests for that port find it there.
import { Server } from 'node:net'

const { listen } = Server.prototype
const send = globalThis.fetch
let chosen

Server.prototype.listen = function (first, ...rest) {
  const isNamed = typeof first === 'object' && first !== null
  const port = isNamed ? first.port : first
  if (Number(port) !== 8080) return listen.call(this, first, ...rest)
  this.once('listening', () => {
    chosen = this.address().port
    console.log(`listening on http://127.0.0.1:${chosen}`)
  })
  return isNamed ? listen.call(this, { ...first, port: 0 }, ...rest) : listen.call(this, 0, ...rest)
}

globalThis.fetch = (input, init) =>
  send(typeof input === 'string' ? input.replace('//localhost:8080', `//127.0.0.1:${chosen}`) : input, init)
