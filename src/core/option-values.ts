import { atOnce, isPromise } from './maybe-promise.ts'
import { localTime } from './time.ts'

/** What the value of an option must be. */
export interface ValueRule {
  readonly accepts: (value: unknown) => boolean
  /** What it is, for the message: it follows "takes". */
  readonly text: string
  /** Whether the option must be there. */
  readonly isRequired?: boolean
  /** Says what the value is instead. Left out: its kind alone, since the value may be a secret. */
  readonly describe?: (value: unknown) => string
}

/** The rule of an option that has a default: its value where it is left out. */
export interface DefaultRule<Value> extends ValueRule {
  readonly default: Value
}

/** @throws TypeError for an option whose value could not have the effect that its name promises */
export function checkValues(owner: string, options: object, rules: Readonly<Record<string, ValueRule>>): void {
  for (const [name, rule] of Object.entries(rules)) {
    const value = Object.hasOwn(options, name) ? (options as Readonly<Record<string, unknown>>)[name] : undefined
    if (value === undefined ? !Object.hasOwn(rule, 'isRequired') : rule.accepts(value)) continue
    const kind = describeWrong(rule, value)
    // Some member of it is wrong, which its kind does not say.
    const found = kind === 'an object' || kind === 'a list' ? '' : `; it is ${kind}`
    throw new TypeError(`${owner} takes as ${name}: ${rule.text}${found}.`)
  }
}

function describeWrong(rule: ValueRule, value: unknown): string {
  return rule.describe === undefined ? describeValue(value) : rule.describe(value)
}

/** The rule of an option that must be there. */
export function required(rule: ValueRule): ValueRule {
  return { ...rule, isRequired: true }
}

/** The rule of an option, with the value that stands for one that is left out. */
export function withDefault<const Value>(rule: ValueRule, value: Value): DefaultRule<Value> {
  return { ...rule, default: value }
}

/** For an option whose value has a check of its own, where it is read. */
export const CHECKED_LATER: ValueRule = { accepts: () => true, text: 'a value' }
export const FUNCTION: ValueRule = { accepts: (value) => typeof value === 'function', text: 'a function' }
export const BOOLEAN: ValueRule = { accepts: (value) => typeof value === 'boolean', text: 'true or false' }
/** A limit; `Infinity` is none. */
export const SIZE: ValueRule = numberThat((value) => value >= 0, 'a number of 0 or more')
export const POSITIVE: ValueRule = numberThat((value) => value > 0, 'a number above 0')
export const COUNT: ValueRule = numberThat(
  (value) => value > 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY),
  'a positive integer, or Infinity',
)
/** A pause that timers can make. */
export const MILLISECONDS: ValueRule = numberThat((value) => value >= 1 && value < 2 ** 31, 'milliseconds, 1 or more')
/** How long something is kept. */
export const DURATION: ValueRule = numberThat((value) => value >= 1, 'milliseconds, 1 or more, or Infinity')
/** A duration that may be none. */
export const PERIOD: ValueRule = writtenAs(SIZE, 'a number of milliseconds, 0 or more')
export const TEXT: ValueRule = { accepts: (value) => typeof value === 'string' && value !== '', text: 'text' }
export const FIELD_VALUE: ValueRule = textLike(/^[\t\x20-\x7e]*$/, 'the value of a field, in ASCII')

const CLOCK_RULE: ValueRule = {
  // Asked once: a `Date`, text or a promise would make times that never come, or that are other ones.
  accepts: (value) => typeof value === 'function' && Number.isFinite(atOnce((value as () => unknown)())),
  text: 'a function that gives milliseconds since the epoch, such as Date.now',
}

/** Gives milliseconds since the epoch. */
export const CLOCK: DefaultRule<() => number> = withDefault(CLOCK_RULE, localTime)

/** The path of one resource, below the mount. */
export const PATH: ValueRule = textLike(/^(?:\/[^/{}?#\s]+)+$/, "a path, such as '/operations'")

export const LOG: ValueRule = writtenAs(either(BOOLEAN, FUNCTION), 'a function, or false to report nothing')

/** An object with members of its own; a `Map` has none. */
export const RECORD: ValueRule = { accepts: hasProperties, text: 'an object' }
/** An object of which each member counts: a copy would be without those of its class or prototype. */
export const MEMBERS: ValueRule = writtenAs(recordOf(CHECKED_LATER), 'an object with members of its own')

export function oneOf(...values: readonly string[]): ValueRule {
  const text = values.map((value) => `'${value}'`).join(', ')
  return {
    accepts: (value) => values.includes(value as string),
    text: values.length === 1 ? text : `one of ${text}`,
    describe: quoteValue,
  }
}

export function either(...rules: readonly ValueRule[]): ValueRule {
  const text = rules.map((rule) => rule.text).join(', or ')
  const { describe } = rules.find((rule) => rule.describe !== undefined) ?? {}
  return { accepts: (value) => rules.some((rule) => rule.accepts(value)), text, ...(describe && { describe }) }
}

/** Whether changes need a condition (RFC 6585 §3). */
export const PRECONDITIONS: ValueRule = oneOf('optional', 'required')

/** @param least the fewest members */
export function listOf(rule: ValueRule, least = 0): ValueRule {
  return {
    accepts: (value) => Array.isArray(value) && value.length >= least && value.every((item) => rule.accepts(item)),
    text: `a list${least > 0 ? ' that is not empty' : ''}, each member ${rule.text}`,
    describe: (value) => {
      const index = Array.isArray(value) ? value.findIndex((item) => !rule.accepts(item)) : -1
      return index === -1 ? describeValue(value) : `a list with ${describeWrong(rule, (value as unknown[])[index])}`
    },
  }
}

/** Users and their secrets. */
export const ACCOUNTS: ValueRule = writtenAs(MEMBERS, 'an object of names and secrets, such as { ada: secret }')

/** An object, and what the values of its members must be. They are its own: a copy would be without others. */
export function recordOf(rule: ValueRule): ValueRule {
  return {
    accepts: (value) =>
      hasProperties(value) && !inheritsMembers(value) && Object.values(value).every((item) => rule.accepts(item)),
    text: `an object, each member ${rule.text}`,
  }
}

/** A number for which a condition holds. */
export function numberThat(holds: (value: number) => boolean, text: string): ValueRule {
  return { accepts: (value) => typeof value === 'number' && holds(value), text }
}

/** Text of a form. */
export function textLike(form: RegExp, text: string): ValueRule {
  return { accepts: (value) => typeof value === 'string' && form.test(value), text }
}

/** The same rule with a text that shows how the value is written. */
export function writtenAs(rule: ValueRule, text: string): ValueRule {
  return { accepts: rule.accepts, text }
}

/** An object with members of given types, by `typeof`. */
export function shapedAs(shape: Readonly<Record<string, string>>): ValueRule {
  const names = Object.entries(shape)
  return {
    accepts: (value) =>
      RECORD.accepts(value) && names.every(([name, type]) => typeof (value as Record<string, unknown>)[name] === type),
    text: `an object with ${names.map(([name, type]) => `${name} (${type})`).join(', ')}`,
  }
}

/** What every store has. */
export const STORE: ValueRule = /* @__PURE__ */ shapedAs({
  read: 'function',
  write: 'function',
  create: 'function',
  remove: 'function',
  list: 'function',
})

const PATCH_FORMAT = shapedAs({ mediaType: 'string', parse: 'function' })

/** The type of content is compared with the name of a format in lower case, and without parameters (RFC 9110 §8.3.1). */
export const PATCH_FORMATS: ValueRule = listOf(
  {
    accepts: (value) =>
      PATCH_FORMAT.accepts(value) && /^[^A-Z\s;]+$/.test((value as { readonly mediaType: string }).mediaType),
    text: `${PATCH_FORMAT.text}, the mediaType in lower case and without parameters`,
  },
  1,
)

/**
 * Names a value that is of the wrong kind, for a message. Never the value itself, which may be a secret. The rejection of a
 * promise is passed over: after the error nothing waits for it.
 */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return `the number ${value}`
  if (typeof value === 'string') return value === '' ? 'empty text' : 'text'
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`
  if (Array.isArray(value)) return 'a list'
  if (isPromise(atOnce(value))) return 'a promise, which has to be awaited first'
  return typeof value === 'object' ? `a${builtInName(value) ?? 'n object'}` : `a value of type ${typeof value}`
}

/** Names the class, after a space, of an object whose content is not in its properties: copies of these are empty. */
function builtInName(value: object): string | undefined {
  // By its tag, since it may come from another realm.
  return /^\[object( (?:Map|Set|Date|RegExp|String|Number|Boolean|Headers|FormData|URLSearchParams))\]$/.exec(
    Object.prototype.toString.call(value),
  )?.[1]
}

/** Whether a value is an object with properties: no list, no `Map` and the like, and no promise. */
export function hasProperties(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  // Most are plain: they need no name, which would be half the cost of a refusal.
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return !isPromise(value)
  return describeValue(value) === 'an object'
}

/** Whether an object has values from its class or prototype, such as getters. Those of Object.prototype, of any realm, do not count. */
function inheritsMembers(value: object): boolean {
  for (let from = Object.getPrototypeOf(value); from !== null; from = Object.getPrototypeOf(from)) {
    if (Object.hasOwn(from, 'isPrototypeOf')) return false
    const members = Object.values(Object.getOwnPropertyDescriptors(from))
    if (members.some(({ get, enumerable }) => get !== undefined || enumerable === true)) return true
  }
  return false
}

/** Text and numbers as JSON has them, and the kind of any other value: for values that are not secret. */
export function quoteValue(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value) : describeValue(value)
}

/** The name that was probably meant by a misspelt one; `undefined` when none is near. */
export function findNearName(name: string, names: readonly string[]): string | undefined {
  const plain = name.toLowerCase()
  const limit = Math.min(2, Math.floor(plain.length / 2))
  let nearest: string | undefined
  let least = limit + 1
  for (const candidate of names) {
    const distance = countEdits(plain, candidate.toLowerCase(), least)
    if (distance < least) [nearest, least] = [candidate, distance]
  }
  return nearest
}

/** How many letters have to be changed, added, left out or swapped with their neighbour; `enough` when it is that many. */
function countEdits(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough) return enough
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(Math.min(change, last[j]! + 1, row[j - 1]! + 1, isSwap ? beforeLast[j - 2]! + 1 : enough))
    }
    ;[beforeLast, last] = [last, row]
  }
  return Math.min(enough, last[b.length]!)
}
