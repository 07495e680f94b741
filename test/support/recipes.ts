import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll } from 'vitest'
import { closeAfterTest } from './close-after-test.ts'
import { type Program, runProgram } from './run-program.ts'

/** A program of the documentation that serves. */
export interface RunningRecipe {
  readonly program: Program
  /** Where it listens: `http://127.0.0.1:PORT`. */
  readonly base: string
  /** Sends a request; an object as `json` becomes the content. */
  send(method: string, path: string, init?: RecipeRequest): Promise<RecipeAnswer>
}

export interface RecipeRequest {
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly body?: FormData | string
}

export interface RecipeAnswer {
  readonly status: number
  readonly headers: Headers
  /** The content: parsed where it is JSON, text otherwise. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into content that they know
  readonly value: any
}

/** How programs in TypeScript are compiled; decorators are those of Nest. */
const COMPILER_OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  verbatimModuleSyntax: true,
}

/** A program of the documentation that is written in TypeScript, in JavaScript. */
export function compileProgram(code: string): string {
  return ts.transpileModule(code, { compilerOptions: COMPILER_OPTIONS }).outputText
}

let compiled: string | undefined
afterAll(() => {
  if (compiled !== undefined) rmSync(compiled, { recursive: true, force: true })
})

/** A program in JavaScript: within the project, so that it finds the package by its name. */
function compile(file: string): string {
  if (!file.endsWith('.ts')) return file
  if (compiled === undefined) {
    mkdirSync('.tmp', { recursive: true })
    compiled = mkdtempSync(join('.tmp', 'recipes-'))
  }
  const target = join(compiled, `${file.replaceAll(/\W+/g, '-')}.mjs`)
  writeFileSync(target, compileProgram(readFileSync(file, 'utf8')))
  return target
}

/**
 * Runs a program of `examples/recipes` until the end of the test, on a free port instead of 8080.
 * @param env its environment, beside that of the tests
 */
export function startRecipe(file: string, env: Record<string, string> = {}): Promise<RunningRecipe> {
  return startDocProgram(compile(`examples/recipes/${file}`), env)
}

/** The same for a program in any place within the project. */
export async function startDocProgram(file: string, env: Record<string, string> = {}): Promise<RunningRecipe> {
  const program = runProgram(file, env, ['--import', './test/support/free-port.mjs'])
  closeAfterTest(() => program.stop('SIGKILL'))
  const [, base] = await program.waitFor(/listening on (http:\S+)/)
  return { program, base: base!, send: (method, path, init = {}) => sendTo(base!, method, path, init) }
}

/** Sends one request and reads the whole answer; redirects are not followed. */
export async function sendTo(
  base: string,
  method: string,
  path: string,
  request: RecipeRequest,
): Promise<RecipeAnswer> {
  const { headers = {}, json, body } = request
  const type: Record<string, string> = json === undefined ? {} : { 'Content-Type': 'application/json' }
  const content = json === undefined ? body : JSON.stringify(json)
  const init: RequestInit = { method, headers: { ...type, ...headers }, redirect: 'manual' }
  const response = await fetch(base + path, content === undefined ? init : { ...init, body: content })
  const text = await response.text()
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  return { status: response.status, headers: response.headers, value: isJson ? JSON.parse(text) : text }
}
