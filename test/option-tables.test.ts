import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => {
    const text = readFileSync(join('src', file), 'utf8')
    return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  })

const constants = sources.flatMap((source) =>
  source.statements.filter(ts.isVariableStatement).flatMap(({ declarationList }) => [...declarationList.declarations]),
)

/** The table of an interface of options. */
interface Table {
  readonly options: ts.InterfaceDeclaration
  readonly rules: ts.ObjectLiteralExpression
}

const tables: readonly Table[] = constants.flatMap(({ type, initializer }) => {
  const [tableType, rules] =
    initializer !== undefined && ts.isSatisfiesExpression(initializer)
      ? [initializer.type, initializer.expression]
      : [type, initializer]
  if (tableType === undefined || !ts.isTypeReferenceNode(tableType)) return []
  const [of] = tableType.typeArguments ?? []
  if (tableType.typeName.getText() !== 'OptionTable' || of === undefined || !ts.isTypeReferenceNode(of)) return []
  const options = sources
    .flatMap(({ statements }) => statements.filter(ts.isInterfaceDeclaration))
    .find(({ name }) => name.text === of.typeName.getText())
  return options === undefined || rules === undefined || !ts.isObjectLiteralExpression(rules)
    ? []
    : [{ options, rules }]
})

function findConstant(name: ts.Identifier): ts.Expression | undefined {
  const all = constants.filter((constant) => constant.name.getText() === name.text)
  const own = all.find((constant) => constant.getSourceFile() === name.getSourceFile())
  return (own ?? (all.length === 1 ? all[0] : undefined))?.initializer
}

/** The value of a constant expression; `undefined` for a function and for any other that is not constant. */
function evaluate(node: ts.Expression | undefined): unknown {
  if (node === undefined) return undefined
  if (ts.isNumericLiteral(node)) return Number(node.text)
  if (ts.isStringLiteral(node)) return node.text
  if (node.kind === ts.SyntaxKind.TrueKeyword) return true
  if (node.kind === ts.SyntaxKind.FalseKeyword) return false
  if (ts.isArrayLiteralExpression(node)) {
    const [first, ...others] = node.elements
    return others.length > 0 ? undefined : first === undefined ? 'none' : evaluate(first)
  }
  if (ts.isBinaryExpression(node)) return Number(evaluate(node.left)) * Number(evaluate(node.right))
  if (ts.isIdentifier(node)) return evaluate(findConstant(node))
  return node.getText() === 'Number.POSITIVE_INFINITY' ? Number.POSITIVE_INFINITY : undefined
}

/** The default that the rule of an option has: the second argument of `withDefault`. */
function defaultOf(rule: ts.Expression | undefined): unknown {
  if (rule === undefined) return undefined
  if (ts.isIdentifier(rule)) return rule.text === 'CLOCK' ? 'Date.now' : defaultOf(findConstant(rule))
  if (!ts.isCallExpression(rule) || rule.expression.getText() !== 'withDefault') return undefined
  return evaluate(rule.arguments[1])
}

const UNITS: Readonly<Record<string, number>> = {
  KiB: 1024,
  MiB: 1024 * 1024,
  Mi: 1024 * 1024,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
}

/** The value that a description gives as the default; `undefined` where it gives none, or describes it. */
function describedDefault(text: string): unknown {
  const [, literal, word, number, unit = ''] =
    /\bDefault:? (?:`'?([^`']+)'?`|(true|false|none|nothing)\b|(\d[\d ,]*)(?<! )(?: (KiB|MiB|Mi|minutes|hours|days)\b)?)/.exec(
      text,
    ) ?? []
  if (number !== undefined) return Number(number.replaceAll(/[ ,]/g, '')) * (UNITS[unit] ?? 1)
  if (literal === 'Infinity') return Number.POSITIVE_INFINITY
  if (word === 'true' || word === 'false') return word === 'true'
  return literal ?? (word === 'nothing' ? '' : word)
}

interface Option {
  readonly name: string
  readonly described: unknown
  readonly applied: unknown
}

/** The options whose own table has a rule for them; inherited ones are in the table of their interface. */
const options: readonly Option[] = tables.flatMap(({ options, rules }) =>
  options.members.flatMap((member) => {
    const name = member.name?.getText()
    const rule = rules.properties.find((property) => property.name?.getText() === name)
    if (name === undefined || rule === undefined || !ts.isPropertyAssignment(rule)) return []
    const text = ts.getJSDocCommentsAndTags(member).map((doc) => ts.getTextOfJSDocComment(doc.comment) ?? '')
    const described = describedDefault(text.join(' ').replaceAll(/\s+/g, ' '))
    return [{ name: `${options.name.text}.${name}`, described, applied: defaultOf(rule.initializer) }]
  }),
)

/** Defaults of definitions: `completeRoute` and `compileCollection` fill them in, for each kind of route. */
const DEFINITIONS = /^(?:Resource|Document|Collection|Query)Options\./
/** Defaults that another place fills in, because they depend on the use. */
const ELSEWHERE = ['AuthenticationOptions.principalIsAmbient', 'HttpErrorOptions.expose']

/** Described by the option that takes them. */
const SAID_WITHIN = ['PrefixOptions', 'ServedDescription']

describe('the tables of options', () => {
  it('are found', () => {
    expect(tables.length).toBeGreaterThan(30)
    expect(options.filter(({ applied }) => applied !== undefined).length).toBeGreaterThan(60)
  })

  it('are of interfaces that scripts/write-docs.js has for docs/options.md', () => {
    const script = readFileSync('scripts/write-docs.js', 'utf8')
    const names = tables.map(({ options }) => options.name.text)
    expect(names.filter((name) => !script.includes(`'${name}'`) && !SAID_WITHIN.includes(name))).toEqual([])
  })

  it('have the defaults that the descriptions give', () => {
    const values = options.filter(({ applied }) => applied !== undefined)
    const wrong = values.filter(({ described, applied }) => described !== applied)
    expect(wrong).toEqual([])
  })

  it('have a default for each option whose description gives a value', () => {
    const isValue = (described: unknown): boolean => typeof described === 'number' || typeof described === 'boolean'
    const lacking = options
      .filter(({ described, applied }) => isValue(described) && applied === undefined)
      .map(({ name }) => name)
    expect(lacking.filter((name) => !DEFINITIONS.test(name) && !ELSEWHERE.includes(name))).toEqual([])
  })
})
