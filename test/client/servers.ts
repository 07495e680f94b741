import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import { listenForTest } from '../support/listen.ts'

/** Starts a server that ends after the test. @returns its base URL */
export async function start(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listenForTest(createServer(listener))}`
}

/** What a proxy does with an answer that is complete. */
export type Treatment = 'deliver' | 'drop'

/**
 * Starts a proxy that forwards each request, and ends the connection instead of delivering some answers: the server has
 * done its work, and the client never hears of it.
 */
export function startLossyProxy(target: string, treat: (req: IncomingMessage) => Treatment): Promise<string> {
  return start((req, res) => {
    const { method, headers } = req
    const forwarded = request(new URL(req.url!, target), { method: method!, headers }, async (answer) => {
      const chunks: Buffer[] = []
      for await (const chunk of answer) chunks.push(chunk as Buffer)
      if (treat(req) === 'drop') return req.socket.destroy()
      return res.writeHead(answer.statusCode!, answer.headers).end(Buffer.concat(chunks))
    })
    req.pipe(forwarded)
  })
}

/** Loses the first answer to each request with a method. */
export function loseFirst(method: string): (req: IncomingMessage) => Treatment {
  let isLost = false
  return (req) => {
    if (req.method !== method || isLost) return 'deliver'
    isLost = true
    return 'drop'
  }
}
