import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** The demo on each host, in `examples`. */
export const DEMOS: readonly string[] = ['plain-http.js', 'express.js', 'koa.js', 'fastify.js', 'hono.js']

/** A program that runs, and what it has printed. */
export interface Program {
  readonly child: ChildProcess
  readonly output: () => string
  /** Waits until it has printed something that matches. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>
  /** Its exit code, once it has ended and all that it printed is there. */
  readonly ended: Promise<number | null>
  /** Ends it with a signal and waits for it. @returns its exit code */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * Runs a module of this project, with Node if nothing else is named.
 * @param args options of Node
 * @param own arguments of the module
 * @param program another runtime
 */
export function runProgram(
  file: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
  own: readonly string[] = [],
  program: string = process.execPath,
): Program {
  const child = spawn(program, [...args, file, ...own], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  let wake = (): void => {}
  const add = (chunk: Buffer): void => {
    text += chunk.toString()
    wake()
  }
  child.stdout.on('data', add)
  child.stderr.on('data', add)
  const exited = once(child, 'exit').then(([code]) => {
    wake()
    return code as number | null
  })
  return {
    child,
    output: () => text,
    ended: once(child, 'close').then(([code]) => code as number | null),
    async waitFor(pattern) {
      for (;;) {
        const match = pattern.exec(text)
        if (match !== null) return match
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${file} ended: ${text}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      return exited
    },
  }
}
