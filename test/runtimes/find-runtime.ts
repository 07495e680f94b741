export interface Runtime {
  readonly name: string
  /** The program that runs the server. */
  readonly program: string
  /** What stands before the file. */
  readonly args: readonly string[]
  readonly file: string
}

const DEMO = 'examples/plain-http.js'

/** The runtime that RUNTIME names, from the folder RUNTIME_FOLDER of npm packages; Node without it. */
export function findRuntime(): Runtime {
  const { RUNTIME: name = 'node', RUNTIME_FOLDER: folder = '' } = process.env
  const bin = `${folder}/node_modules/.bin`
  const node = { name, program: process.execPath, args: [], file: DEMO }
  if (name === 'node') return node
  if (name === 'bun') return { ...node, program: `${bin}/bun` }
  if (name === 'deno') return { ...node, program: `${bin}/deno`, args: ['run', '--allow-all', '--no-lock'] }
  if (name === 'workerd') return { ...node, file: 'test/runtimes/run-worker.mjs' }
  throw new Error(`RUNTIME is node, bun, deno or workerd, not "${name}".`)
}
