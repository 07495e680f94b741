/** The part of busboy 1.6 that tests use; it comes without types. */
declare module 'busboy' {
  import type { Readable } from 'node:stream'

  interface Busboy {
    on(event: 'field', listener: (name: string, value: string) => void): this
    on(event: 'file', listener: (name: string, content: Readable) => void): this
    on(event: 'error', listener: (error: Error) => void): this
    on(event: 'close', listener: () => void): this
    write(chunk: Uint8Array): boolean
    end(): void
  }

  export default function busboy(config: {
    readonly headers: Readonly<Record<string, string>>
    readonly limits: Readonly<Record<string, number>>
    readonly defCharset: string
  }): Busboy
}
