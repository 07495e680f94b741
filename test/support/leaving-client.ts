import type { Exchange } from '../../src/core/exchange.ts'

/** The exchange of a client, as those that wait for its leaving see it. */
export function createLeavingClient() {
  const listeners = new Set<() => void>()
  const exchange = {
    onClose(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  } as unknown as Exchange
  return {
    exchange,
    listeners,
    leave() {
      for (const listener of [...listeners]) listener()
    },
  }
}
