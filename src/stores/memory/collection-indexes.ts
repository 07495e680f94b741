import { setImmediate as nextTurn } from 'node:timers/promises'
import { isPromise, type MaybePromise } from '../../core/maybe-promise.ts'
import { type CollectionIndex, compareValues, type IndexedValues, type ListOptions, type Page } from '../lists.ts'
import { createIndexingError, nameOf } from '../rules.ts'
import type { StoredResource } from '../types.ts'
import type { Entry } from './member-index.ts'
import { createMember, createQueryLists, type IndexedMember, type QueryLists } from './query-lists.ts'
import { queryPage } from './query-page.ts'

/** Indexes of one collection: while a definition changes, two processes ask by different rules. The oldest goes. */
const MOST_INDEXES = 4
/** Members that are indexed before others have their turn. */
const STEP = 500
/** Milliseconds after which they have it in any case. */
const STEP_TIME = 4

export type CollectionIndexes = ReturnType<typeof createCollectionIndexes>

/** One index, from its first use on. */
interface OpenIndex {
  index: CollectionIndex
  readonly visible: QueryLists
  hidden: QueryLists | undefined
  /** Whether all members that were there at the first use are indexed. */
  isComplete: boolean
  /** States whose values are awaited, by path. */
  readonly awaited: Map<string, StoredResource>
}

/** @param membersAfter some members of the collection in an order of names, hidden ones apart from the others */
export function createCollectionIndexes(
  membersAfter: (name: string | undefined, limit: number, hidden: boolean) => readonly Entry[],
) {
  const indexes = new Map<string, OpenIndex>()
  let latest: OpenIndex | undefined

  /** The index of some rules; a new one has no members yet. */
  function open(index: CollectionIndex): OpenIndex {
    if (latest?.index === index) return latest
    const known = indexes.get(index.version)
    indexes.delete(index.version)
    if (indexes.size === MOST_INDEXES) indexes.delete(indexes.keys().next().value!)
    const opened = known ?? {
      index,
      visible: createQueryLists(index),
      hidden: undefined,
      isComplete: false,
      awaited: new Map(),
    }
    opened.index = index
    indexes.set(index.version, opened)
    latest = opened
    return opened
  }

  /** Indexes the current state of a member; later where its values are. */
  function indexEntry(opened: OpenIndex, entry: Entry, isNew: boolean): MaybePromise<void> {
    const { path, state } = entry
    const values = readValues(opened.index, state)
    if (!isPromise(values)) {
      // None with its name is to be looked for.
      if (isNew) return listsFor(opened, entry).add(createMember(entry, opened.index, values))
      opened.awaited.delete(path)
      return setValues(opened, entry, values)
    }
    opened.awaited.set(path, state)
    return values.then((values) => {
      // Another state has been written meanwhile, or the member was removed.
      if (opened.awaited.get(path) !== state) return
      opened.awaited.delete(path)
      setValues(opened, entry, values)
    })
  }

  /** Indexes what is there already, in small steps: others have their turn. */
  async function indexExisting(opened: OpenIndex): Promise<void> {
    let indexed = 0
    for (const hidden of [false, true]) {
      for (let after: string | undefined, isOver = false; !isOver; ) {
        const deadline = performance.now() + STEP_TIME
        const entries = membersAfter(after, STEP, hidden)
        isOver = entries.length < STEP
        for (const entry of entries) {
          after = nameOf(entry.path)
          if (findMember(opened, after) !== undefined || opened.awaited.has(entry.path)) continue
          indexed++
          const pending = indexEntry(opened, entry, false)
          if (isPromise(pending)) await pending
          // What was read before a pause may be another state by now.
          else if (performance.now() < deadline) continue
          isOver = false
          break
        }
        if (isOver) continue
        report(opened.index, { indexed, isDone: false })
        await nextTurn()
        if (indexes.get(opened.index.version) !== opened) return
      }
    }
    opened.isComplete = true
    if (indexed > 0) report(opened.index, { indexed, isDone: true })
  }

  return {
    /** Indexes a new state of a member by all rules, those of `given` included. @param isNew whether the member is new */
    update(entry: Entry, given: CollectionIndex | undefined, isNew: boolean): void {
      const isKnown = given === undefined || indexes.has(given.version)
      const own = given === undefined ? undefined : open(given)
      for (const opened of indexes.values()) void indexEntry(opened, entry, isNew)
      if (!isKnown) void indexExisting(own!)
    },

    remove(path: string): void {
      const name = nameOf(path)
      for (const opened of indexes.values()) {
        opened.awaited.delete(path)
        const member = findMember(opened, name)
        if (member === undefined) continue
        opened.visible.remove(member)
        opened.hidden?.remove(member)
      }
    },

    /** @throws HttpError 503 while members that exist already are indexed, 400 for a malformed cursor */
    page(index: CollectionIndex, options: ListOptions): Page {
      const isKnown = indexes.has(index.version)
      const opened = open(index)
      if (!isKnown) void indexExisting(opened)
      if (!opened.isComplete || opened.awaited.size > 0) throw createIndexingError()
      const { visible, hidden } = opened
      const lists = options.hidden === true && hidden !== undefined ? [visible, hidden] : [visible]
      return queryPage(lists, options.query!, options)
    },
  }
}

/** The values that a state was written with, where they are by these rules; else those of its content. */
function readValues(index: CollectionIndex, state: StoredResource): MaybePromise<IndexedValues> {
  if (state.indexed?.index.version === index.version) return state.indexed.values
  // One item that cannot be read keeps no list from its answer: it has no values.
  try {
    const values = index.valuesOf(state)
    return isPromise(values) ? values.then(undefined, () => ({})) : values
  } catch {
    return {}
  }
}

function findMember({ visible, hidden }: OpenIndex, name: string): IndexedMember | undefined {
  return visible.find(name) ?? hidden?.find(name)
}

function setValues(opened: OpenIndex, entry: Entry, values: IndexedValues): void {
  const member = createMember(entry, opened.index, values)
  const lists = listsFor(opened, entry)
  const known = lists.find(member.name)
  // Most writes change none of the values.
  if (known?.entry === entry && known.values.every((value, at) => compareValues(value, member.values[at]!) === 0))
    return
  if (known !== undefined) lists.remove(known)
  const others = lists === opened.hidden ? opened.visible : opened.hidden
  const other = others?.find(member.name)
  if (other !== undefined) others!.remove(other)
  lists.add(member)
}

/** Where a member stands: among the visible ones or the hidden ones. */
function listsFor(opened: OpenIndex, { state }: Entry): QueryLists {
  if (state.hidden !== true) return opened.visible
  opened.hidden ??= createQueryLists(opened.index)
  return opened.hidden
}

function report({ report }: CollectionIndex, progress: { readonly indexed: number; readonly isDone: boolean }): void {
  try {
    report?.(progress)
  } catch {
    // A failure to tell of progress ends no indexing.
  }
}
