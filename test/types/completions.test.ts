import { resolve } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'

const FILE = resolve('test/types/editor.ts')
const CURSOR = '\u2038'

/** What an editor knows of a program: completions at the cursor, and the messages of errors. */
function openEditor(program: string): { readonly completions: string[]; readonly messages: string[] } {
  const text = `import { createResourceClient } from '../../src/client.ts'
import { collection, document, singleton } from '../../src/index.ts'\n${program}`
  const options: ts.CompilerOptions = {
    ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, types: ['node'], lib: ['lib.es2023.d.ts'] },
    ...{ strict: true, skipLibCheck: true, allowImportingTsExtensions: true, noEmit: true },
  }
  const editor = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [FILE],
    getScriptVersion: () => '1',
    getScriptSnapshot: (file) => {
      const content = file === FILE ? text.replace(CURSOR, '') : ts.sys.readFile(file)
      return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content)
    },
    getCurrentDirectory: () => resolve('.'),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  })
  const entries = editor.getCompletionsAtPosition(FILE, text.indexOf(CURSOR), undefined)?.entries ?? []
  const diagnostics = editor.getSemanticDiagnostics(FILE)
  return {
    completions: entries.map(({ name }) => name).sort(),
    messages: diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
  }
}

it('completes the value of an option, and names the right ones for a wrong one', () => {
  const { completions, messages } = openEditor(`
    collection({ deletion: '${CURSOR}' })
    collection({ idempotency: 'optionnal' })
    document({ deletion: 'sofft' })
    singleton({ methods: ['GTE'] })
    collection({ methods: ['PUT'] })
    collection({ memberMethods: ['POST'] })
    document({ methods: ['POST'] })`)
  expect(completions).toEqual(['hard', 'queued', 'soft'])
  expect(messages.slice(1)).toEqual([
    expect.stringContaining(`Did you mean '"optional"'?`),
    expect.stringContaining(`Did you mean '"soft"'?`),
    expect.stringMatching(/^Type '"GTE"' is not assignable to type '(?!.*"DELETE").*"PATCH"/),
    expect.stringMatching(/^Type '"PUT"' is not assignable to type '(?!.*"PATCH").*"POST"/),
    expect.stringMatching(/^Type '"POST"' is not assignable to type '.*"DELETE"/),
    expect.stringMatching(/^Type '"POST"' is not assignable to type '.*"DELETE"/),
  ])
})

it('names the path that a client cannot create or list, or replace', () => {
  const { messages } = openEditor(`
    const resources = {
      '/log': collection({ methods: ['GET'] }),
      '/users': collection(),
      '/users/{user}/notes': collection(),
      '/config': singleton({ methods: ['GET'] }),
    }
    const client = createResourceClient<typeof resources>('/')
    void client.create('/log', { name: 'Ada' })
    void client.create('/usres', { name: 'Ada' })
    client.list('/usres')
    void client.replace('/config', 'any', { name: 'Ada' })
    void client.create('/users/{user}/notes', { usr: 1 }, { text: 'a' })`)
  const creatable = `'"/users" | "/users/{user}/notes"'`
  expect(messages).toEqual([
    `Argument of type '"/log"' is not assignable to parameter of type ${creatable}.`,
    `Argument of type '"/usres"' is not assignable to parameter of type ${creatable}.`,
    expect.stringMatching(/^Argument of type '"\/usres"' is not assignable to parameter of type '.*"\/log"/),
    expect.stringContaining(`Argument of type '"/config"' is not assignable to parameter of type`),
    expect.stringContaining(`'usr' does not exist in type '{ readonly user: string | number; }'`),
  ])
})

it('names what is missing behind a path', () => {
  const { messages } = openEditor(`
    const resources = { '/users': collection() }
    const client = createResourceClient<typeof resources>('/')
    void client.read('/users/{id}')
    void client.read('/usres/{id}', { id: 1 })
    void client.remove('/users/{id}', { id: 1 })
    void client.replace('/users/{id}', { id: 1 }, 'all', { name: 'Ada' })`)
  expect(messages).toEqual([
    'Expected 2-3 arguments, but got 1.',
    expect.stringMatching(/^Argument of type '"\/usres\/{id}"' is not assignable .*"\/users\/{id}"/),
    'Expected 3-4 arguments, but got 2.',
    expect.stringMatching(/^Argument of type '"all"' is not assignable .*"any"/),
  ])
})
