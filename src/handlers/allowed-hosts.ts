import { note } from '../core/diagnostics.ts'
import type { Step } from '../core/handler.ts'
import { readAuthority } from '../core/place.ts'
import { emptyReply } from '../core/reply.ts'
import { parseAuthority } from '../protocol/request-target.ts'

const MISDIRECTED = emptyReply(421, ['Cache-Control', 'no-store'])

/**
 * Makes the step that refuses requests for hosts we do not serve (RFC 9110 §15.5.20). Without it a web page may point
 * a name of its own at this machine and read from us as if it were the same origin (DNS rebinding).
 * @param hosts names, with a port where the port matters; `*.example.test` for every name below one
 * @throws TypeError when there is no host, or one is malformed
 */
export function createHostCheck(hosts: readonly string[]): Step {
  if (!Array.isArray(hosts) || hosts.length === 0 || !hosts.every((host) => typeof host === 'string')) {
    throw new TypeError('"allowedHosts" is a list of at least one host name.')
  }
  const exact = new Set<string>()
  const suffixes: string[] = []
  for (const text of hosts as readonly string[]) {
    const isPattern = text.startsWith('*.')
    const authority = parseAuthority(isPattern ? text.slice(2) : text)
    if (authority === undefined || (isPattern && (authority.port !== '' || authority.host.startsWith('[')))) {
      throw new TypeError(`"allowedHosts" has "${text}", which is neither a host name nor "*." and a host name.`)
    }
    if (isPattern) suffixes.push('.' + authority.host)
    else exact.add(authority.port === '' ? authority.host : `${authority.host}:${authority.port}`)
  }

  function isServed(text: string): boolean {
    const authority = parseAuthority(text)
    if (authority === undefined) return false
    const { host, port } = authority
    // The default port of a scheme is left out (RFC 9110 §4.2.3), and a proxy may have ended TLS.
    const ports = port === '' ? ['443', '80'] : [port]
    if (exact.has(host) || ports.some((port) => exact.has(`${host}:${port}`))) return true
    return suffixes.some((suffix) => host.length > suffix.length && host.endsWith(suffix))
  }

  return function checkHost(exchange) {
    const authority = readAuthority(exchange)
    if (authority !== undefined && isServed(authority)) return undefined
    note(exchange, 'host not served')
    return MISDIRECTED
  }
}
