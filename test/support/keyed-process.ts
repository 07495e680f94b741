import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { openStore, type StorePlace } from './sql-stores.ts'

// A program of its own: serves a collection whose requests have keys until it is killed. Its first line is the port.
const { store } = openStore(JSON.parse(process.argv[2]!) as StorePlace)
const resources = { '/items': collection({ idempotency: 'required' }) }
const server = createServer(createResourceService(store, { resources }))
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
