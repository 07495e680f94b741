import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { closeAfterTest } from './close-after-test.ts'

/** Lets a server listen on a free port; it ends with the test, and its connections with it. @returns the port */
export async function listenForTest(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  closeAfterTest(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
