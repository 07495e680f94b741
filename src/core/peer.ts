import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, Socket } from 'node:net'
import { atOnce } from './maybe-promise.ts'
import { isHttp2 } from './place.ts'

/** Who is at the other end of a connection. */
export interface Peer {
  readonly isEncrypted: boolean
  /** Whether it runs on this machine: a loopback address, or a Unix socket. */
  readonly isLocal: boolean
  /** Its address; `undefined` for a Unix socket. */
  readonly address: string | undefined
}

/** Finds out who sends the requests of a connection. */
export function readPeer(req: IncomingMessage): Peer {
  const { socket } = req
  const address = socket.remoteAddress
  const isEncrypted = (socket as { encrypted?: boolean }).encrypted === true
  if (address !== undefined) return { isEncrypted, isLocal: isLoopback(address), address }
  // A TCP socket whose peer has gone has no remote address either, but still a local one: it is not a Unix socket.
  const isUnix = !isHttp2(req) && socket instanceof Socket && !socket.destroyed && socket.localAddress === undefined
  return { isEncrypted, isLocal: isUnix, address }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

export function isLoopback(address: string): boolean {
  return isInList(loopback, address)
}

function isInList(list: BlockList, address: string): boolean {
  const zone = address.indexOf('%')
  const plain = zone < 0 ? address : address.slice(0, zone)
  const version = isIP(plain)
  return version !== 0 && list.check(plain, version === 6 ? 'ipv6' : 'ipv4')
}

/**
 * The proxies in front of us: addresses and CIDR blocks of IPv4 and IPv6; `loopback` for this machine, Unix sockets
 * included; or a function that decides by address (`undefined` for a Unix socket).
 */
export type TrustProxy = string | readonly string[] | ((address: string | undefined) => boolean)

/**
 * Makes the decision whether a peer is a trusted proxy.
 * @throws TypeError for an entry that is not an address
 */
export function createProxyTrust(trust: TrustProxy | undefined): (peer: Peer) => boolean {
  if (trust === undefined) return () => false
  if (typeof trust === 'function') return ({ address }) => atOnce(trust(address)) === true
  const entries = typeof trust === 'string' ? [trust] : trust
  if (!Array.isArray(entries)) {
    throw new TypeError('"trustProxy" names the proxies: addresses, CIDR blocks, "loopback", or a function.')
  }
  const list = new BlockList()
  let trustsLocal = false
  for (const entry of entries as readonly string[]) {
    if (entry === 'loopback') trustsLocal = true
    else addEntry(list, entry)
  }
  return (peer) => (trustsLocal && peer.isLocal) || (peer.address !== undefined && isInList(list, peer.address))
}

function addEntry(list: BlockList, entry: string): void {
  const [address = '', prefix, ...rest] = String(entry).split('/')
  const version = isIP(address)
  const longest = version === 6 ? 128 : 32
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= longest)
  if (version === 0 || address.includes('%') || !isPrefix || rest.length > 0) {
    throw new TypeError(`"trustProxy" has "${entry}", which is neither an address, a CIDR block nor "loopback".`)
  }
  const family = version === 6 ? 'ipv6' : 'ipv4'
  if (prefix === undefined) list.addAddress(address, family)
  else list.addSubnet(address, Number(prefix), family)
}
