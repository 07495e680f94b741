const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }
const isWorker = navigator?.userAgent === 'Cloudflare-Workers'

/**
 * The bytes to hand to a response. Workers detach the ArrayBuffer of what is written, and with it the content of the
 * store or cache that it belongs to: they get a copy.
 */
export function toOwnBytes<Bytes extends Uint8Array | undefined>(bytes: Bytes): Bytes | Uint8Array {
  return isWorker && bytes !== undefined ? Uint8Array.from(bytes) : bytes
}
