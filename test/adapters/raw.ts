import type { Server } from 'node:http'
import type { Answer } from '../support/answer.ts'
import { formatRequest, type RawRequest } from '../support/ask.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { openRawClient } from '../wire/raw-client.ts'

/** Listens on a free port until the test ends. */
export async function listen(server: Server | Promise<Server>): Promise<number> {
  const host: RunningHost = await runServer(await server)
  closeAfterTest(host.close)
  return host.port
}

/** Sends one request, byte by byte, over a connection of its own. */
export async function send(port: number, request: RawRequest): Promise<Answer> {
  const client = await openRawClient(port)
  try {
    client.send(formatRequest(request))
    return await client.read(request.method)
  } finally {
    client.socket.destroy()
  }
}
