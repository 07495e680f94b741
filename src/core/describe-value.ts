import { isPromise } from './maybe-promise.ts'

/** Names a value that is of the wrong kind, for a message. Never the value itself, which may be a secret. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return `the number ${value}`
  if (typeof value === 'string') return value === '' ? 'empty text' : 'text'
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`
  if (Array.isArray(value)) return 'a list'
  if (isPromise(value)) return 'a promise, which has to be awaited first'
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
