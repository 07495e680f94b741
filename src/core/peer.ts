import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, Socket } from 'node:net'
import { parseForwarded } from '../protocol/forwarded.ts'
import type { Exchange } from './exchange.ts'
import { atOnce } from './maybe-promise.ts'
import { describeValue } from './option-values.ts'

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
  const isUnix = socket instanceof Socket && !socket.destroyed && socket.localAddress === undefined
  return { isEncrypted, isLocal: isUnix, address }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

function isLoopback(address: string): boolean {
  return isInList(loopback, address)
}

function isInList(list: BlockList, address: string): boolean {
  const zone = address.indexOf('%')
  const plain = zone < 0 ? address : address.slice(0, zone)
  const version = isIP(plain)
  return version !== 0 && list.check(plain, version === 6 ? 'ipv6' : 'ipv4')
}

/**
 * The proxies in front of the server: addresses and CIDR blocks of IPv4 and IPv6; `loopback` for this machine, Unix sockets
 * included; or a function that decides by address (`undefined` for a Unix socket).
 */
export type TrustProxy = string | readonly string[] | ((address: string | undefined) => boolean)

/** Makes the decision whether a peer is a trusted proxy. @throws TypeError for an entry that is not an address */
export function createProxyTrust(trust: TrustProxy | undefined): (peer: Peer) => boolean {
  if (trust === undefined) return () => false
  if (typeof trust === 'function') return ({ address }) => atOnce(trust(address)) === true
  const entries = typeof trust === 'string' ? [trust] : trust
  if (!Array.isArray(entries)) {
    throw new TypeError(
      `"trustProxy" names the proxies: addresses, CIDR blocks, "loopback", or a function; it is ${describeValue(trust)}.`,
    )
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

/** Finds the address of the client of a request; `undefined` for a Unix socket. */
export type AddressFinder = (exchange: Exchange) => string | undefined

export function findPeerAddress({ req }: Exchange): string | undefined {
  return req.socket.remoteAddress
}

/**
 * Makes the search for the address of a client. A trusted proxy names its own client last in its forwarding field; the
 * nearest hop that is not a trusted proxy is the client. Hops before it were written by others and do not count.
 * @throws TypeError for a malformed proxy address
 */
export function createAddressFinder(trustProxy: TrustProxy | undefined): AddressFinder | undefined {
  if (trustProxy === undefined) return undefined
  const isTrusted = createProxyTrust(trustProxy)
  return (exchange) => {
    const peer = readPeer(exchange.req)
    let { address } = peer
    if (!isTrusted(peer)) return address
    for (const hop of readHops(exchange).reverse()) {
      // A proxy that names no client is itself the nearest that is known.
      if (hop === '') break
      address = hop
      if (!isTrusted({ isEncrypted: false, isLocal: isLoopback(hop), address: hop })) break
    }
    return address
  }
}

/** The hops that proxies have named, the nearest last; none where two fields disagree or one is malformed. */
function readHops(exchange: Exchange): string[] {
  const forwarded = exchange.field('forwarded')
  const xForwardedFor = exchange.field('x-forwarded-for')
  const hops = forwarded === undefined ? undefined : parseForwarded(forwarded)?.map((hop) => readNode(hop.for ?? ''))
  if (forwarded !== undefined && hops === undefined) return []
  if (xForwardedFor === undefined) return hops ?? []
  const others = xForwardedFor.split(',').map(readNode)
  // A proxy writes one of the two and may pass the other on from its client.
  return hops === undefined || hops.at(-1) === others.at(-1) ? others : []
}

/** The address of a node, without brackets and port (RFC 7239 §6); other names as they are. */
function readNode(node: string): string {
  const text = node.trim()
  const bracketed = /^\[([^\]]*)\](?::\w+)?$/.exec(text)?.[1]
  if (bracketed !== undefined) return bracketed
  const host = text.slice(0, text.lastIndexOf(':'))
  return isIPv4(host) ? host : text
}

/**
 * The part of an address that one client has for itself, for counting by it: of IPv6 the first 64 bits, since a single
 * client has all addresses below them.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || isIP(address) !== 6) return mapped ?? address
  const [head = '', tail] = address.split('%')[0]!.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : new Array<string>(Math.max(0, 8 - groups.length - last.length)).fill('0')
  return [...groups, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
