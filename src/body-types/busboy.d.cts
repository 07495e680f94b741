/** What `multipart-parser.ts` uses of busboy 1.6, which comes without types. */
declare module 'busboy' {
  import type { Readable } from 'node:stream'

  interface BusboyConfig {
    readonly headers: Readonly<Record<string, string>>
    readonly limits: Readonly<Record<string, number>>
    readonly defCharset: string
    readonly fileHwm: number
  }

  interface Busboy {
    on(event: 'field', listener: (name: string | undefined, value: string | undefined) => void): this
    on(event: 'file', listener: (name: string | undefined, content: Readable) => void): this
    on(event: 'error', listener: (error: Error) => void): this
    write(chunk: Uint8Array): boolean
    end(chunk: Uint8Array): void
    destroy(): void
  }

  function busboy(config: BusboyConfig): Busboy

  export = busboy
}
