// Writes the parts of the documentation that are derived: docs/options.md from the option interfaces,
// docs/store-contract.md from those of stores, docs/checklist.md from the names of the tests, and the programs of examples/
// in all pages. `npm run docs`; with --check it only says whether they are true.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { fillProgramBlocks } from './program-blocks.js'
import { writeContract } from './store-contract.js'

const OPTIONS = [
  ['createResourceService', ['ServiceOptions']],
  ['createResourceService, auth', ['AuthenticationOptions', 'ServiceAuthOptions']],
  ['collection', ['CollectionOptions', 'QueryOptions']],
  ['collection, each of files', ['FileOptions']],
  ['collection, scope as an object', ['NamedScope']],
  ['collection, document', ['DocumentOptions']],
  ['singleton', ['SingletonOptions']],
  ['collection, document, singleton', ['ResourceOptions']],
  ['limits', ['BodyLimits']],
  ['operations', ['OperationsOptions']],
  ['cors, preflight', ['CorsOptions']],
  ['preflight alone', ['PreflightOptions']],
  ['auth', ['AuthenticationOptions', 'AuthOptions']],
  ['basic', ['BasicOptions']],
  ['bearer', ['BearerOptions']],
  ['metadata, protectedResourceMetadata', ['ProtectedResourceMetadataOptions']],
  ['jwt', ['JwtOptions']],
  ['digest', ['DigestOptions']],
  ['negotiate', ['NegotiateOptions']],
  ['kerberosAcceptor', ['KerberosAcceptorOptions']],
  ['hashPassword', ['PasswordCost']],
  ['attemptLimit', ['AttemptLimitOptions']],
  ['conditional', ['ConditionalOptions']],
  ['range', ['RangeOptions']],
  ['What conditional and range are given', ['RangeSource', 'KnownState', 'KnownValidators']],
  ['patch', ['PatchOptions']],
  ['jsonPatch', ['PatchLimits']],
  ['mergePatch', ['MergePatchOptions']],
  ['bodyParse', ['BodyParseOptions']],
  ['digestFields', ['DigestFieldOptions']],
  ['requireHttps', ['RequireHttpsOptions']],
  ['attach', ['AttachOptions']],
  ['koaMiddleware', ['KoaOptions']],
  ['honoMiddleware', ['HonoOptions']],
  ['createAdapter', ['AdapterOptions']],
  ['memoryStore', ['MemoryStoreOptions']],
  ['sqliteStore', ['SqliteStoreOptions', 'SqlStoreOptions']],
  ['postgresStore', ['PostgresStoreOptions', 'SqlStoreOptions']],
  ['sqliteStore, postgresStore, moveContents', ['MoveOptions']],
  ['fileContents', ['FileContentsOptions']],
  ['s3Contents', ['S3ContentsOptions']],
  ['createResourceClient', ['ResourceClientOptions']],
  ['createResourceClient, each request', ['RequestOptions']],
  ['createResourceClient, list', ['ListOptions']],
  ['createResourceClient, create', ['CreateOptions']],
  ['createResourceClient, edit', ['EditOptions']],
  ['createResourceClient, upload', ['UploadOptions']],
  ['createResourceClient, download', ['DownloadOptions']],
  ['openapi', ['OpenApiOptions']],
  ['HttpError', ['HttpErrorOptions']],
  ['testStore', ['TestStoreOptions', 'StoreCapabilities', 'TestRunner']],
  ['testContents', ['TestContentsOptions', 'TestRunner']],
]

/** What is given in part: defaults stand for the rest. */
const PARTIAL = ['BodyLimits', 'PatchLimits', 'TestRunner']

function writeOptions() {
  const sections = OPTIONS.flatMap(([owner, names]) => {
    const rows = names.flatMap(readInterface)
    return [`## ${owner}`, '', '| option | type | meaning |', '|---|---|---|', ...rows, '']
  })
  return [
    '# Options',
    '',
    'Every option of every public function. All are optional but those marked with *. This page is derived from the source.',
    '',
    ...sections,
  ].join('\n')
}

const sources = listFiles('src', '.ts').map((file) =>
  ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true),
)

function readInterface(name) {
  const isWanted = (node) => ts.isInterfaceDeclaration(node) && node.name.text === name
  const source = sources.find(({ statements }) => statements.some(isWanted))
  if (source === undefined) throw new Error(`There is no interface ${name}.`)
  const found = source.statements.find(isWanted)
  return found.members.map((member) => {
    const type = member.type === undefined ? 'function' : member.type.getText(source)
    const text = (member.jsDoc ?? [])
      .flatMap((doc) => ts.getTextOfJSDocComment(doc.comment) ?? [])
      .join(' ')
      .replace(/\{@link (\w+)\}/g, '`$1`')
    const mark = member.questionToken === undefined && !PARTIAL.includes(name) ? '*' : ''
    return `| \`${member.name.getText(source)}\`${mark} | \`${clean(type)}\` | ${clean(text)} |`
  })
}

const clean = (text) => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim()

function writeChecklist() {
  const rows = new Map()
  for (const file of listFiles('test', '.test.ts')) {
    const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
    visit(source, (sentence) => {
      for (const [, rfc, section] of sentence.matchAll(/RFC (\d+) §([\d.]+\d|\d)/g)) {
        const key = `${rfc} ${section}`
        rows.set(key, [...(rows.get(key) ?? []), [sentence, file]])
      }
    })
  }
  const keys = [...rows.keys()].sort((a, b) => compareSections(a, b))
  const lines = keys.flatMap((key) => {
    const [rfc, section] = key.split(' ')
    const link = `[RFC ${rfc} §${section}](https://www.rfc-editor.org/rfc/rfc${rfc}#section-${section})`
    const unique = new Map(rows.get(key).map(([sentence, file]) => [`${sentence}\0${file}`, [sentence, file]]))
    return [...unique.values()].map(
      ([sentence, file]) =>
        `| ${link} | ${clean(citeOnlyRfcs(sentence).replaceAll(/%[a-z]|\$\w+/g, '…'))} | \`${file}\` |`,
    )
  })
  return [
    '# What is held by which test',
    '',
    'Requirements of the RFCs and the tests that hold them. This page is derived from the names of the tests.',
    '',
    '| requirement | test | file |',
    '|---|---|---|',
    ...lines,
    '',
  ].join('\n')
}

/** Leaves out the rows and threats of lists that the repository does not have. */
function citeOnlyRfcs(sentence) {
  return sentence
    .replaceAll(/(?:, )?\b(?:rows?|threats?|interface [A-Z]+) [A-Z]?\d+(?:(?:, | and | to )[A-Z]?\d+)*/g, '')
    .replaceAll('(, ', '(')
    .replaceAll(/ \(\)/g, '')
}

function listFiles(folder, ending) {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return listFiles(path, ending)
      return path.endsWith(ending) ? [path] : []
    })
}

/** Calls back with every sentence of `it(...)`, `it.each(...)(...)` and the like. */
function visit(node, found) {
  if (ts.isCallExpression(node) && /^(?:it|test|describe)\b/.test(node.expression.getText())) {
    const [first] = node.arguments
    if (first !== undefined && ts.isStringLiteralLike(first)) found(first.text)
  }
  // The first cell of a row in a table of cases is its sentence.
  if (ts.isArrayLiteralExpression(node) && node.elements.length > 1 && ts.isStringLiteralLike(node.elements[0])) {
    found(node.elements[0].text)
  }
  ts.forEachChild(node, (child) => visit(child, found))
}

function compareSections(a, b) {
  const numbers = (key) => key.split(/[ .]/).map(Number)
  const [x, y] = [numbers(a), numbers(b)]
  // RFC 9110 first: it is what everything else builds on.
  const rank = (list) => (list[0] === 9110 ? -1 : list[0])
  if (rank(x) !== rank(y)) return rank(x) - rank(y)
  for (let i = 1; i < Math.max(x.length, y.length); i++) {
    if ((x[i] ?? -1) !== (y[i] ?? -1)) return (x[i] ?? -1) - (y[i] ?? -1)
  }
  return 0
}

const differs = (written, derived) => written !== derived

/** What a page says that is not so: any difference, but in the checklist only a test that is gone. */
const isUntrue = {
  'docs/checklist.md': (written, derived) => {
    const rows = new Set(derived.split('\n'))
    return written.split('\n').some((row) => row.startsWith('| [') && !rows.has(row))
  },
}

const derived = ['docs/options.md', 'docs/checklist.md', 'docs/store-contract.md']
const written = listFiles('docs', '.md').filter((file) => !derived.includes(file))
const pages = {
  'docs/options.md': writeOptions(),
  'docs/checklist.md': writeChecklist(),
  'docs/store-contract.md': writeContract(sources, clean),
  ...Object.fromEntries(written.map((file) => [file, fillProgramBlocks(readFileSync(file, 'utf8'))])),
}
for (const [file, text] of Object.entries(pages)) {
  if (!process.argv.includes('--check')) writeFileSync(file, text)
  else if ((isUntrue[file] ?? differs)(readFileSync(file, 'utf8'), text)) {
    console.error(
      `${file} does not match the source, the examples and the tests. Run "npm run docs" and commit the result.`,
    )
    process.exitCode = 1
  }
}
