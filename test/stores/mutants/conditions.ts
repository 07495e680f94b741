import { type Condition, compareValues, type IndexedValue, meetsCondition } from '../../../src/stores/lists.ts'
import { naive } from './naive-queries.ts'

/** A store that judges some conditions in another way; `undefined` leaves the sound one. */
const judging = (judge: (value: IndexedValue, condition: Condition) => boolean | undefined) =>
  naive(({ meets }) => ({ meets: (value, condition) => judge(value, condition) ?? meets(value, condition) }))

/** A store that takes another relation for one. */
const relating = (operator: string, other: 'gt' | 'gte' | 'lt' | 'lte') =>
  judging((value, condition) =>
    condition.operator === operator ? meetsCondition(value, { ...condition, operator: other } as Condition) : undefined,
  )

/** A store that compares strings in another way. */
const comparing = (change: (text: string) => string) => {
  const changed = (value: IndexedValue) => (typeof value === 'string' ? change(value) : value)
  return judging((value, condition) =>
    'values' in condition
      ? meetsCondition(changed(value), { ...condition, values: condition.values.map(changed) })
      : meetsCondition(changed(value), { ...condition, value: changed(condition.value) } as Condition),
  )
}

export const notInWithoutNull = judging((value, { operator }) =>
  operator === 'notIn' && value === null ? false : undefined,
)
export const looseEquality = judging((value, condition) =>
  condition.operator === 'in' ? condition.values.some((wanted) => String(wanted) === String(value)) : undefined,
)
export const inMatchesNull = judging((value, { operator }) => (operator === 'in' && value === null ? true : undefined))
export const falsyIsAbsent = judging((value, condition) =>
  condition.operator === 'exists' ? Boolean(value) === condition.value : undefined,
)
export const existsAlwaysTrue = judging((value, { operator }) => (operator === 'exists' ? value !== null : undefined))
export const greaterOrEqual = relating('gt', 'gte')
export const onlyGreater = relating('gte', 'gt')
export const lessOrEqual = relating('lt', 'lte')
export const onlyLess = relating('lte', 'lt')
export const nullIsLess = judging((value, { operator }) => (value === null && /^lt/.test(operator) ? true : undefined))
export const acrossTypes = judging((value, condition) =>
  condition.operator === 'gt' && value !== null ? compareValues(value, condition.value) > 0 : undefined,
)
export const numbersAsText = judging((value, condition) => {
  if (condition.operator !== 'lt' || typeof value !== 'number' || typeof condition.value !== 'number') return undefined
  return String(value) < String(condition.value)
})
export const shortFloats = judging((value, condition) =>
  typeof value === 'number' && 'value' in condition && typeof condition.value === 'number'
    ? meetsCondition(Math.fround(value), { ...condition, value: Math.fround(condition.value) } as Condition)
    : undefined,
)
export const negativeZero = judging((value, condition) =>
  condition.operator === 'in' ? condition.values.some((wanted) => Object.is(wanted, value)) : undefined,
)
export const byCodeUnit = judging((value, condition) => {
  if (condition.operator !== 'gt' || typeof value !== 'string' || typeof condition.value !== 'string') return undefined
  return value > condition.value
})
export const caseInsensitive = comparing((text) => text.toLowerCase())
export const padded = comparing((text) => text.trimEnd())
export const hyphenless = comparing((text) => text.replaceAll('\u00ad', ''))
export const normalized = comparing((text) => text.normalize('NFC'))
export const truncated = comparing((text) => Buffer.from(text).subarray(0, 255).toString('latin1'))
export const likePattern = judging((value, condition) => {
  if (condition.operator !== 'prefix') return undefined
  const pattern = condition.value
    .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    .replaceAll('%', '.*')
    .replaceAll('_', '.')
  return typeof value === 'string' && new RegExp(`^${pattern}`, 'su').test(value)
})
export const anythingHasTheEmptyPrefix = judging((_, condition) =>
  condition.operator === 'prefix' && condition.value === '' ? true : undefined,
)
export const numbersHavePrefixes = judging((value, condition) =>
  condition.operator === 'prefix' && value !== null ? String(value).startsWith(condition.value) : undefined,
)
export const fewValues = judging((value, condition) =>
  condition.operator === 'in'
    ? meetsCondition(value, { ...condition, values: condition.values.slice(0, 4) })
    : undefined,
)
export const firstConditionOnly = naive(({ meetsAll }) => ({
  meetsAll: (values, where, pieces) => meetsAll(values, where.slice(0, 1), pieces),
}))
export const anyCondition = naive(() => ({
  meetsAll: (values, where, { meets, value }) =>
    where.length === 0 || where.some((condition) => meets(value(values, condition.property), condition)),
}))
/** A second condition on a property takes the place of the first. */
export const lastOfProperty = naive(({ meetsAll }) => ({
  meetsAll: (values, where, pieces) =>
    meetsAll(values, [...new Map(where.map((condition) => [condition.property, condition])).values()], pieces),
}))
/** Reads what every object has for a value. */
export const inheritedNames = naive(() => ({
  value: (values, property) => {
    const found: unknown = values[property]
    return found === undefined || found === null
      ? null
      : Object(found) === found
        ? String(found)
        : (found as IndexedValue)
  },
}))
export const fifteenProperties = naive(({ value }) => ({
  value: (values, property) => (property === 'p15' ? null : value(values, property)),
}))
/** Ignores a condition on a property of the scope beside another one. */
export const oneScopeProperty = naive(({ meetsAll }) => ({
  meetsAll: (values, where, pieces) => {
    const isScope = ({ property }: Condition) => ['owner', 'region'].includes(property)
    const [first] = where.filter(isScope)
    return meetsAll(
      values,
      where.filter((condition) => !isScope(condition) || condition === first),
      pieces,
    )
  },
}))
