import type { KnownState } from './validators.ts'

/** A representation of which any part can be sent. */
export interface RangeSource extends KnownState {
  /** Content-Type. */
  readonly contentType: string
  /** The content: in memory, or a way to read a part of it. */
  readonly content: string | Uint8Array | RangeReader
  /**
   * The SHA-256 digest of a content that is read in parts, 32 bytes: behind `digestFields` answers carry it where a
   * request wants one. Default: none, and such answers have no Repr-Digest.
   */
  readonly sha256?: Uint8Array | undefined
}

/** Content that is read in parts, all of them of one version, whatever happens to it meanwhile. */
export interface RangeReader {
  /** Length in bytes. */
  readonly size: number
  /** Reads bytes `first` to `last`, both inclusive. Called once for each part, and not at all for HEAD, 304 and 416. */
  open(first: number, last: number): AsyncIterable<Uint8Array>
  /** Called once, when nothing more will be read: after the answer, or when the client has gone away. */
  close?(): unknown
}
