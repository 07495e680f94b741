import { checkValues, type DefaultRule, describeValue, findNearName, RECORD, type ValueRule } from './option-values.ts'

/**
 * The options of a function: the rule of each property of the interface, with its default where that is the same for all
 * uses. The interface has the types and the descriptions, which editors show. The compiler refuses a table that lacks a
 * property of the interface, and one that has another.
 */
export type OptionTable<Options extends object> = {
  readonly [Name in keyof Options]-?: ValueRule & { readonly default?: NonNullable<Options[Name]> }
}

type WithDefault<Table> = {
  [Name in keyof Table]: Table[Name] extends { readonly default: unknown } ? Name : never
}[keyof Table]

/** Options in which those with a default are always there. */
type ResolvedOptions<Options extends object, Table> = Readonly<Options> & {
  readonly [Name in WithDefault<Table> & keyof Options]-?: Exclude<Options[Name], undefined>
}

/**
 * Options of 0.1.0 that have another name since 0.2.0, and how each is written now. Some belong to several functions. `note`
 * says of the values what is different, too.
 */
const RENAMED_OPTIONS: Readonly<Record<string, readonly { readonly name: string; readonly note?: string }[]>> = {
  remove: [{ name: 'deletion', note: " ('hard', 'soft' or 'queued')" }],
  removed: [{ name: 'deleteResponse' }],
  replaced: [{ name: 'putResponse' }],
  createdCacheControl: [{ name: 'postCacheControl' }],
  names: [{ name: 'ids' }],
  keeps: [{ name: 'storedHeaders' }],
  inline: [{ name: 'allowInline' }],
  form: [{ name: 'formFields' }],
  text: [{ name: 'textProperty' }],
  require: [{ name: 'requireAuth' }],
  codings: [{ name: 'contentCodings' }],
  parsedSize: [{ name: 'bodySize' }],
  errors: [{ name: 'unexpectedErrors', note: " ('respond' or 'forward')" }],
  required: [{ name: 'preconditions', note: " ('required' or 'optional')" }],
  formats: [{ name: 'patchFormats' }],
  remember: [{ name: 'cacheLifetime', note: ', in milliseconds' }, { name: 'cacheSize' }],
  seconds: [{ name: 'window', note: ', in milliseconds' }],
}

/** Values of 0.1.0 that are written in another way since 0.2.0, by option. */
const RENAMED_VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  deletion: { erase: 'hard' },
  unexpectedErrors: { answer: 'respond' },
  authorize: { hide: 'not-found' },
}

/**
 * Refuses a value that has another spelling since 0.2.0. It would be taken for an unknown one, and an unknown verdict
 * of `authorize` for a plain refusal.
 * @throws TypeError that names the new spelling
 */
export function refuseRenamedValue(subject: string, option: string, value: unknown): void {
  const now = typeof value === 'string' ? lookUp(lookUp(RENAMED_VALUES, option), value) : undefined
  if (now !== undefined) throw new TypeError(`${subject}: '${value}' is '${now}' since 0.2.0.`)
}

/** The error for an option that does not exist. */
function createUnknownOption(owner: string, name: string, names: readonly string[]): TypeError {
  const renamed = lookUp(RENAMED_OPTIONS, name)?.find((option) => names.includes(option.name))
  const near = renamed === undefined ? findNearName(name, names) : undefined
  let hint = near === undefined ? '' : ` Did you mean "${near}"?`
  if (renamed !== undefined) hint = ` It is "${renamed.name}" since 0.2.0${renamed.note ?? ''}.`
  return new TypeError(`${owner} has no option "${name}".${hint} It has: ${names.join(', ')}.`)
}

function lookUp<Value>(table: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined
}

/**
 * Reads the options of a function by their table: a copy with the defaults filled in. It inherits nothing: neither a later
 * change nor a polluted prototype sets an option.
 * @param owner the public name that takes the options, for the message
 * @param options what the user passed
 * @throws TypeError for an option that does not exist: a misspelt one would be silently without effect. It names the
 *   option that was probably meant, and the new name of one that was renamed. Also for an option that is inherited or not
 *   enumerable, which a copy would be without, for one that is missing, and for a value that breaks its rule
 */
export function resolveOptions<Options extends object, const Table extends OptionTable<Options>>(
  owner: string,
  options: Options | undefined,
  table: Table,
): ResolvedOptions<Options, Table> {
  if (options !== undefined && !RECORD.accepts(options)) {
    throw new TypeError(`${owner} takes an object of options, not ${describeValue(options)}.`)
  }
  const names = Object.keys(table)
  const leftOut = options && names.find((name) => isLeftOut(options, name))
  if (leftOut !== undefined) {
    throw new TypeError(
      `${owner} takes options as enumerable properties of the object itself; "${leftOut}" is not one.`,
    )
  }
  const copy = Object.create(null) as Record<string, unknown>
  for (const [name, value] of Object.entries(options ?? {})) {
    if (!names.includes(name)) throw createUnknownOption(owner, name, names)
    refuseRenamedValue(`${owner} ${name}`, name, value)
    // Lists are copied too: what is added to one later has passed no check.
    if (value !== undefined) copy[name] = Array.isArray(value) ? [...value] : value
  }
  checkValues(owner, copy, table)
  for (const [name, rule] of Object.entries<ValueRule>(table)) {
    if (copy[name] === undefined && Object.hasOwn(rule, 'default')) {
      copy[name] = (rule as DefaultRule<unknown>).default
    }
  }
  return Object.freeze(copy) as ResolvedOptions<Options, Table>
}

/** Options of which each is set: to `undefined`, where it is left out and has no default. */
export type CompleteOptions<Options extends object, Defaulted> = {
  readonly [Name in keyof Options]-?: Name extends Defaulted
    ? Exclude<Options[Name], undefined>
    : Options[Name] | undefined
}

/**
 * Resolved options as an ordinary object, which is faster to read for each request than a copy without a prototype. It
 * inherits no option, because each of them is set.
 */
export function completeOptions<Options extends object, Table extends OptionTable<Options>>(
  options: ResolvedOptions<Options, Table>,
  table: Table,
): CompleteOptions<Options, WithDefault<Table>> {
  const names = Object.keys(table) as (keyof Options)[]
  return Object.fromEntries(names.map((name) => [name, options[name]])) as CompleteOptions<Options, WithDefault<Table>>
}

/** Whether a copy of an object would be without a property that it has, such as a getter of its class. */
function isLeftOut(options: object, name: string): boolean {
  if (Object.prototype.propertyIsEnumerable.call(options, name) || !(name in options)) return false
  let holder: object | null = options
  while (holder !== null && !Object.hasOwn(holder, name)) holder = Object.getPrototypeOf(holder)
  // A polluted Object.prototype, of any realm, sets no options.
  return holder !== null && !Object.hasOwn(holder, 'isPrototypeOf')
}

/** A copy of options with some of them changed. It inherits nothing. */
export function changeOptions<Options extends object>(options: Options, changes: Partial<Options>): Readonly<Options> {
  return Object.freeze(Object.assign(Object.create(null), options, changes)) as Options
}

/** A copy of options without some of them. It inherits nothing either. */
export function omitOptions<Options extends object, Name extends keyof Options & string>(
  options: Options,
  ...names: readonly Name[]
): Readonly<Omit<Options, Name>> {
  const copy = Object.assign(Object.create(null), options) as Record<string, unknown>
  for (const name of names) delete copy[name]
  return Object.freeze(copy) as Omit<Options, Name>
}

/**
 * A property of an object that a user's hook returned, such as a source of content. Getters of a class count; what
 * Object.prototype has does not.
 */
export function readProperty<Value extends object, Name extends keyof Value>(
  object: Value,
  name: Name,
): Value[Name] | undefined {
  return name in Object.prototype && !Object.hasOwn(object, name) ? undefined : object[name]
}
