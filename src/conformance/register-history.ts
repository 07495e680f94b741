/**
 * What a call did to one resource. States are named by their versions; `undefined` is absence.
 * - `write`: whatever the state was, it is `to` now; `isNew` tells whether there was none before.
 * - `swap`: the state was `from` and is `to` now; the same for a call that only saw it.
 */
export type Effect =
  | { readonly kind: 'write'; readonly isNew: boolean; readonly to: string }
  | { readonly kind: 'swap'; readonly from: string | undefined; readonly to: string | undefined }

/** One call to a resource, between two moments of a common clock. */
export interface Operation {
  readonly begin: number
  readonly end: number
  readonly effect: Effect
}

/**
 * Looks for an order of the calls that explains what all of them saw, with no call before one that had ended when it
 * began (linearizability; Wing and Gong, with the states already tried remembered as Lowe does).
 * @param history the calls to one resource, which did not exist at first; at most a few hundred, few at a time
 * @returns `undefined` when there is such an order, otherwise a sentence
 */
export function explainHistory(history: readonly Operation[]): string | undefined {
  const operations = [...history].sort((a, b) => a.begin - b.begin)
  const isDone = new Array<boolean>(operations.length).fill(false)
  const tried = new Set<string>()
  let most = 0
  let stuckAt: string | undefined

  function search(first: number, done: number, state: string | undefined): boolean {
    while (isDone[first]) first++
    if (first === operations.length) return true
    // All before `first` are done; of those after it, only the ones that overlap with it can be.
    const ahead: number[] = []
    for (let i = first + 1, left = done - first; left > 0; i++) {
      if (isDone[i]) {
        ahead.push(i)
        left--
      }
    }
    const key = `${first};${ahead.join(',')};${state ?? ''}`
    if (tried.has(key)) return false
    tried.add(key)
    if (done >= most) {
      most = done
      stuckAt = state
    }
    let earliestEnd = Number.POSITIVE_INFINITY
    for (let i = first; i < operations.length && operations[i]!.begin < earliestEnd; i++) {
      if (isDone[i]) continue
      const { end, effect } = operations[i]!
      earliestEnd = Math.min(earliestEnd, end)
      const next = apply(effect, state)
      if (next === 'impossible') continue
      isDone[i] = true
      if (search(first, done + 1, next.state)) return true
      isDone[i] = false
    }
    return false
  }

  if (search(0, 0, undefined)) return undefined
  const seen = operations.map(({ begin, end, effect }) => `[${begin}-${end}] ${describe(effect)}`).join('; ')
  return (
    `No order of the calls explains what they saw: after ${most} of ${operations.length} the state is ` +
    `${stuckAt ?? 'absent'}, and no call that could be next fits. The calls: ${seen}.`
  )
}

function apply(effect: Effect, state: string | undefined): { readonly state: string | undefined } | 'impossible' {
  const isPossible = effect.kind === 'write' ? effect.isNew === (state === undefined) : effect.from === state
  return isPossible ? { state: effect.to } : 'impossible'
}

function describe(effect: Effect): string {
  if (effect.kind === 'write') return `${effect.isNew ? 'created' : 'wrote'} ${effect.to}`
  if (effect.from === effect.to) return `saw ${effect.to ?? 'nothing'}`
  return `swapped ${effect.from ?? 'nothing'} for ${effect.to ?? 'nothing'}`
}
