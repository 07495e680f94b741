/**
 * Copies the own properties of an options object, so that neither later changes nor a polluted prototype reach us.
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
  const copy = Object.create(null) as Record<string, unknown>
  if (options === undefined) return copy as Options
  if (typeof options !== 'object' || options === null) throw new TypeError(`${owner} takes an object of options.`)
  for (const [name, value] of Object.entries(options)) {
    if (!(names as readonly string[]).includes(name)) {
      throw new TypeError(`${owner} has no option "${name}". It has: ${names.join(', ')}.`)
    }
    if (value !== undefined) copy[name] = value
  }
  return Object.freeze(copy) as Options
}
