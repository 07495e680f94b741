import { describeValue } from '../core/option-values.ts'
import type { CreateResult, ListOptions, Page, RemoveResult, WriteResult } from '../stores/types.ts'

/**
 * A page as the contract has it: what walks through pages relies on it to come to an end. A count that was not asked for is
 * left out: it would tell of items that the caller may not see.
 * @throws TypeError for a store that gives another one
 */
export function checkPage(page: Page, { after, limit, query }: ListOptions): Page {
  const { items, next, total } = page
  if (!Array.isArray(items))
    throw new TypeError(`The store gave as items of a page ${describeValue(items)}, not a list.`)
  if (items.length > limit) throw new TypeError(`The store gave ${items.length} items for a page of at most ${limit}.`)
  if (next !== undefined && (typeof next !== 'string' || next === '')) {
    throw new TypeError(`The store gave as cursor of the next page ${describeValue(next)}.`)
  }
  if (next !== undefined && next === after)
    throw new TypeError('The store gave the cursor of a page as that of the next.')
  if (total === undefined) return page
  if (query?.count !== true) return next === undefined ? { items } : { items, next }
  if (Number.isSafeInteger(total) && total >= 0) return page
  throw new TypeError(`The store gave as total of a list ${describeValue(total)}.`)
}

const OUTCOMES: Readonly<Record<'write' | 'create' | 'remove', readonly string[]>> = {
  write: ['replaced', 'created', 'conflict'],
  create: ['created', 'conflict'],
  remove: ['removed', 'absent', 'conflict'],
}

/**
 * The result of a change as the contract has it: what is not a conflict is acknowledged.
 * @throws TypeError for a store that gives another one, whose change may have been made or not
 */
export function checkChange<Result extends WriteResult | CreateResult | RemoveResult>(
  method: keyof typeof OUTCOMES,
  result: Result,
): Result {
  const outcome: unknown = result?.outcome
  if (OUTCOMES[method].includes(outcome as string)) return result
  const given = typeof outcome === 'string' ? JSON.stringify(outcome) : describeValue(outcome)
  throw new TypeError(`The store gave as outcome of ${method}() ${given}.`)
}
