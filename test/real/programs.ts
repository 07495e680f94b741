import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'

/**
 * The path of a program of the system, the first of these names that is there; `undefined` when none is. A machine that
 * sets REQUIRE_REAL_PARTS=1, as CI does, has them all.
 */
export function findProgram(...names: readonly string[]): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  if (process.env['REQUIRE_REAL_PARTS'] === '1') throw new Error(`The tests need the program ${names.join(' or ')}.`)
  return undefined
}

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end. */
export function run(
  program: string,
  args: readonly string[],
  options: {
    readonly env?: NodeJS.ProcessEnv
    readonly input?: string
    readonly cwd?: string
    /** Milliseconds that it may take. Default 15 000. */
    readonly limit?: number
  } = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const { env = process.env, cwd, limit = 15_000 } = options
    const child = execFile(
      program,
      args,
      { env, timeout: limit, maxBuffer: 1 << 24, ...(cwd === undefined ? {} : { cwd }) },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
        resolve({ code, stdout, stderr })
      },
    )
    child.stdin?.end(options.input ?? '')
  })
}

/** Whether an npm package that is built on the machine is there. */
export function findPackage(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name)
    return true
  } catch {
    if (process.env['REQUIRE_REAL_PARTS'] === '1') throw new Error(`The tests need the package ${name}.`)
    return false
  }
}
