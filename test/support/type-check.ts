import { resolve } from 'node:path'
import ts from 'typescript'
import { entries } from '../../tsup.config.ts'
import type { DocBlock } from './doc-blocks.ts'

/** Modules that only one runtime has. */
const MODULES = `declare module 'cloudflare:node' {
  export function httpServerHandler(options: { port: number }): unknown
}`

/** A block that begins with the name of a file has that name, so that others can import it. */
function fileOf({ page, name, code, file }: DocBlock, extension: string): string {
  if (file !== undefined) return resolve(file)
  const [, own] = /^\/\/ ([\w-]+\.ts)\b/.exec(code) ?? []
  const folder = page.replaceAll(/\W+/g, '-')
  return resolve('.tmp', folder, own ?? `${name.replaceAll(/\W+/g, '-')}.${extension}`)
}

/** The errors of the type checker in blocks of the documentation, each with its block. */
export function findTypeErrors(
  blocks: readonly DocBlock[],
  extension: 'mjs' | 'ts',
  more: ts.CompilerOptions,
): readonly string[] {
  const files = new Map(blocks.map((block) => [fileOf(block, extension), block.code]))
  files.set(resolve('modules.d.ts'), MODULES)
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: ['node'], experimentalDecorators: true },
    ...{ target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, allowImportingTsExtensions: true },
    paths: Object.fromEntries(
      Object.entries(entries).map(([entry, file]) => [
        `http-resource-service${entry === 'index' ? '' : `/${entry}`}`,
        [resolve(file)],
      ]),
    ),
    ...more,
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile } = host
  host.fileExists = (file) => files.has(resolve(file)) || fileExists(file)
  delete host.directoryExists // a folder of blocks is on no disk
  host.readFile = (file) => files.get(resolve(file)) ?? readFile(file)
  const program = ts.createProgram([...files.keys()], options, host)
  return [...files.keys()]
    .flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)))
    .map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}
