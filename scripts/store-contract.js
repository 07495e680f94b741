import ts from 'typescript'

const FILES = [
  ...['types', 'write-types', 'lists'].map((name) => `src/stores/${name}.ts`),
  ...['contents/types', 'core/maybe-promise'].map((name) => `src/${name}.ts`),
]

/** What a store is called with and returns, in the order of the page. */
const CONTRACT = [
  ['ResourceStore', 'The functions of a store.'],
  ['StoreSupport', 'The optional parts of the contract.'],
  ['StoredResource', 'A state, as `read` and `list` return it.'],
  ['ContentFields', 'What `Content` and `StoredResource` have in common.'],
  ['Content', 'What is written.'],
  ['LargeBody', 'Content that is read in pieces.'],
  ['StagedBody', 'What `stage` returns.'],
  ['Tombstone', 'What `read` returns for what was removed.'],
  ['ReadOptions', ''],
  ['WriteOptions', ''],
  ['Requirement', 'Part of the options of `write` and `create`.'],
  ['RelatedWrite', ''],
  ['WriteConflict', 'What a refused write returns.'],
  ['CreateOptions', ''],
  ['RemoveOptions', ''],
  ['ListOptions', ''],
  ['Page', 'What `list` returns.'],
  ['ListQuery', ''],
  ['OrderKey', ''],
  ['CollectionIndex', ''],
  ['LocateRequest', ''],
]

/** What the members above are made of, and what the functions return. */
const TYPES = [
  ...['MaybePromise', 'StoredState', 'WriteResult', 'CreateResult', 'RemoveResult', 'Expectation', 'NewState'],
  ...['SmallBody', 'IndexedValue', 'IndexedValues', 'Condition'],
]

/** The page of the store contract: its interfaces with their docstrings. @param clean makes text fit into a cell */
export function writeContract(sources, clean) {
  const own = sources.filter(({ fileName }) => FILES.includes(fileName))
  const sections = CONTRACT.flatMap(([name, sentence]) => {
    const isWanted = (node) => ts.isInterfaceDeclaration(node) && node.name.text === name
    const source = own.find(({ statements }) => statements.some(isWanted))
    if (source === undefined) throw new Error(`${FILES.join(' and ')} have no interface ${name}.`)
    const found = source.statements.find(isWanted)
    const rows = found.members.map((member) => {
      const mark = member.questionToken === undefined ? '*' : ''
      return `| \`${member.name.getText(source)}\`${mark} | \`${clean(typeOf(member, source))}\` | ${clean(describe(member))} |`
    })
    const head = sentence === '' ? [] : [sentence, '']
    return [`## ${name}`, '', ...head, '| name | type | meaning |', '|---|---|---|', ...rows, '']
  })
  const types = TYPES.map((name) => {
    const isWanted = (node) => ts.isTypeAliasDeclaration(node) && node.name.text === name
    const source = own.find(({ statements }) => statements.some(isWanted))
    if (source === undefined) throw new Error(`${FILES.join(' and ')} have no type ${name}.`)
    const found = source.statements.find(isWanted)
    const text = found.type.getText(source).replaceAll(/\/\*\*.*?\*\//gs, '')
    return `| \`${name}\` | \`${clean(text).replace(/^\\\| /, '')}\` | ${clean(describe(found))} |`
  })
  return [
    '# The store contract',
    '',
    'A store implements `ResourceStore`. What each member means stands below; how to write one, and how to test it, is in',
    '[a store of your own](custom-store.md). Members with * are required. This page is derived from the source.',
    '',
    ...sections,
    '## Types',
    '',
    '| name | type | meaning |',
    '|---|---|---|',
    ...types,
    '',
  ].join('\n')
}

function typeOf(member, source) {
  if (ts.isMethodSignature(member)) {
    const parameters = member.parameters.map((parameter) => parameter.getText(source)).join(', ')
    return `(${parameters}) => ${member.type.getText(source)}`
  }
  return member.type.getText(source)
}

function describe(member) {
  return (member.jsDoc ?? [])
    .flatMap((doc) => [
      ts.getTextOfJSDocComment(doc.comment) ?? '',
      ...(doc.tags ?? []).map((tag) => {
        const name = ts.isJSDocParameterTag(tag) ? `\`${tag.name.getText()}\`: ` : ''
        return `${name}${ts.getTextOfJSDocComment(tag.comment) ?? ''}.`
      }),
    ])
    .join(' ')
    .replace(/\{@link (\w+)\}/g, '`$1`')
}
