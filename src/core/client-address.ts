import { isIP, isIPv4 } from 'node:net'
import { parseForwarded } from '../protocol/forwarded.ts'
import type { AddressFinder, Exchange } from './exchange.ts'
import { createProxyTrust, isLoopback, readPeer, type TrustProxy } from './peer.ts'

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
