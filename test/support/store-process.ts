import { writeSync } from 'node:fs'
import { openStore } from './sql-stores.ts'
import { runTask, type StoreJob } from './store-tasks.ts'

// A program of its own: does one job, then ends. Lines go out at once, so that a kill takes none back.
const { place, task } = JSON.parse(process.argv[2]!) as StoreJob
const { store, close } = openStore(place)
await runTask(store, task, (line) => writeSync(1, `${line}\n`))
await close()
