import {
  type CollectionIndex,
  compareText,
  compareValues,
  type IndexedValue,
  type IndexedValues,
  indexedValueOf,
} from '../lists.ts'
import { nameOf, parseIntegerName } from '../types.ts'
import type { Entry } from './member-index.ts'
import { createRankedList, type RankedList } from './ranked-list.ts'

/** A member of a collection with its values, in the order of the properties of an index. */
export interface IndexedMember {
  readonly entry: Entry
  readonly name: string
  /** The value of the name, where it is an integer. */
  readonly integer: number | undefined
  readonly values: readonly IndexedValue[]
}

/** Compares members by name: integers by value, then others by code point. */
export function compareMembers(a: IndexedMember, b: IndexedMember): number {
  if (a.integer !== undefined) return b.integer === undefined ? -1 : a.integer - b.integer
  return b.integer !== undefined ? 1 : compareText(a.name, b.name)
}

export function createMember(entry: Entry, index: CollectionIndex, values: IndexedValues): IndexedMember {
  const name = nameOf(entry.path)
  const own: IndexedValue[] = []
  for (const property of index.properties) own.push(indexedValueOf(values, property))
  return { entry, name, integer: parseIntegerName(name), values: own }
}

/** Stands for the order of names, in place of the position of a property. */
export const BY_NAME = -1

/** The members of one collection in every order in which a query may read them. */
export interface QueryLists {
  /** Positions of the properties of the scope. */
  readonly scope: readonly number[]
  add(member: IndexedMember): void
  remove(member: IndexedMember): void
  /** The member that has a name. */
  find(name: string): IndexedMember | undefined
  /**
   * Members by the value of a property, then by name.
   * @param position of the property, or `BY_NAME`
   * @param isScoped whether they stand in the order of the scope first; then not for a property of the scope
   */
  list(position: number, isScoped: boolean): RankedList<IndexedMember>
}

export function createQueryLists(index: CollectionIndex): QueryLists {
  const scope = index.scope.map((property) => index.properties.indexOf(property))
  const positions = [BY_NAME, ...index.properties.keys()]
  const whole = new Map(positions.map((position) => [position, createRankedList(compareBy(position, []))]))
  const scoped = new Map(
    (scope.length === 0 ? [] : positions)
      .filter((position) => !scope.includes(position))
      .map((position) => [position, createRankedList(compareBy(position, scope))]),
  )
  const all = [...whole.values(), ...scoped.values()]
  const members = new Map<string, IndexedMember>()

  return {
    scope,
    add(member) {
      members.set(member.name, member)
      for (let i = 0; i < all.length; i++) all[i]!.add(member)
    },
    remove(member) {
      members.delete(member.name)
      for (const list of all) list.remove(member)
    },
    find: (name) => members.get(name),
    list(position, isScoped) {
      return (isScoped ? scoped : whole).get(position)!
    },
  }
}

function compareBy(position: number, scope: readonly number[]) {
  const keys = position === BY_NAME ? scope : [...scope, position]
  return (a: IndexedMember, b: IndexedMember): number => {
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!
      const order = compareValues(a.values[key]!, b.values[key]!)
      if (order !== 0) return order
    }
    return compareMembers(a, b)
  }
}
