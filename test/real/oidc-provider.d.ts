declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'
  /** As much of it as is used; the package has no types. */
  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    callback(): (req: IncomingMessage, res: ServerResponse) => void
  }
}
