import { describeValue, findNearName } from './describe-value.ts'
import { RECORD } from './option-values.ts'

/**
 * Copies the own properties of an options object. The copy inherits nothing: neither a later change nor a polluted
 * prototype sets an option.
 * @param owner the public name that takes the options, for the message
 * @param options what the user passed
 * @param names every option there is
 * @throws TypeError for an option that does not exist: a misspelt one would be silently without effect
 */
export function readOptions<Options extends object>(
  owner: string,
  options: Options | undefined,
  names: readonly (keyof Options & string)[],
): Readonly<Options> {
  if (options !== undefined && !RECORD.accepts(options)) {
    throw new TypeError(`${owner} takes an object of options, not ${describeValue(options)}.`)
  }
  const copy = Object.create(null) as Record<string, unknown>
  for (const [name, value] of Object.entries(options ?? {})) {
    if (!(names as readonly string[]).includes(name)) {
      const near = findNearName(name, names)
      const hint = near === undefined ? '' : ` Did you mean "${near}"?`
      throw new TypeError(`${owner} has no option "${name}".${hint} It has: ${names.join(', ')}.`)
    }
    if (value !== undefined) copy[name] = value
  }
  return Object.freeze(copy) as Options
}

/** A copy of options with some of them changed. Like `readOptions` gives it, it inherits nothing. */
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
