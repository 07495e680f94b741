import { describe, expect, it } from 'vitest'
import {
  type Conditions,
  evaluateIfRange,
  evaluatePreconditions,
  type PreconditionResult,
  type Validators,
} from '../../src/protocol/preconditions.ts'

const NOW = Date.UTC(2026, 5, 15)
const L = 'Tue, 15 Nov 1994 08:12:31 GMT'
const L_850 = 'Tuesday, 15-Nov-94 08:12:31 GMT'
const L_ASCTIME = 'Tue Nov 15 08:12:31 1994'
const BEFORE = 'Tue, 15 Nov 1994 08:12:30 GMT'
const AFTER = 'Tue, 15 Nov 1994 08:12:32 GMT'
const OLD = 'Mon, 01 Jan 1990 00:00:00 GMT'
const FUTURE = 'Fri, 01 Jan 2094 00:00:00 GMT'
/** Not a whole second: only whole seconds are compared (row H117). */
const lastModified = Date.UTC(1994, 10, 15, 8, 12, 31, 700)

/** The states in the columns of the table. */
const STATES: readonly (Validators | undefined)[] = [
  { entityTags: ['"a"'], lastModified, dateIsStrong: true }, // S  strong tag
  { entityTags: ['W/"w"'], lastModified, dateIsStrong: true }, // W  weak tag
  { entityTags: [] }, // N  no validator at all
  { entityTags: [], lastModified, dateIsStrong: true }, // D  date alone
  { entityTags: ['"a"'], lastModified }, // C  changed twice in the second of its date
  { entityTags: ['"a"', '"b"'], lastModified, dateIsStrong: true }, // V  two variants, the first selected
  undefined, // X  nothing there
]

const OUTCOMES = { p: 'proceed', n: 'not-modified', f: 'failed', m: 'malformed' } as const
const READS = ['GET', 'HEAD']
const WRITES = ['PUT', 'PATCH', 'DELETE', 'POST']

const fields: Record<string, keyof Conditions> = {
  IM: 'ifMatch',
  INM: 'ifNoneMatch',
  IMS: 'ifModifiedSince',
  IUS: 'ifUnmodifiedSince',
}

type Row = readonly [source: string, conditions: Readonly<Record<string, string>>, reads: string, writes: string]

// p proceed · n not modified (304) · f failed (412) · m malformed (400); one letter a state, S W N D C V X.
const ROWS: readonly Row[] = [
  ['no condition', {}, 'ppppppp', 'ppppppp'],

  ['§13.1.1, row H105', { IM: '"a"' }, 'pfffppf', 'pfffppf'],
  ['§13.1.1: any variant counts for a write', { IM: '"b"' }, 'fffffff', 'fffffpf'],
  ['§13.1.1: strong comparison, row H106', { IM: '"w"' }, 'fffffff', 'fffffff'],
  ['§13.1.1: strong comparison, row H106', { IM: 'W/"w"' }, 'fffffff', 'fffffff'],
  ['§13.1.1: strong comparison, row H106', { IM: 'W/"a"' }, 'fffffff', 'fffffff'],
  ['§13.1.1, row H104, threat 42', { IM: '*' }, 'ppppppf', 'ppppppf'],
  ['§13.1.1: any member, row H105', { IM: '"x", "a"' }, 'pfffppf', 'pfffppf'],
  ['§13.1.1: no member, row H105', { IM: '"x", "y"' }, 'fffffff', 'fffffff'],
  ['§5.6.1.2: empty members, row H12', { IM: ', ,"a"' }, 'pfffppf', 'pfffppf'],
  ['threat 40: an empty list matches nothing', { IM: '' }, 'fffffff', 'fffffff'],
  ['threat 40: an empty list matches nothing', { IM: ', ,' }, 'fffffff', 'fffffff'],
  ['row H110, threat 40', { IM: 'abc' }, 'mmmmmmm', 'mmmmmmm'],
  ['row H110, threat 40', { IM: '"a' }, 'mmmmmmm', 'mmmmmmm'],
  ['row H110, threat 40', { IM: '*, "a"' }, 'mmmmmmm', 'mmmmmmm'],
  ['row H110, threat 40', { IM: '"a" "x"' }, 'mmmmmmm', 'mmmmmmm'],
  ['row H110: malformed after a match', { IM: '"a", x' }, 'mmmmmmm', 'mmmmmmm'],

  ['§13.1.4, rows H112, H116 and H117, threat 46', { IUS: L }, 'ppppfpp', 'ppppfpp'],
  ['§5.6.7: rfc850-date, row H16', { IUS: L_850 }, 'ppppfpp', 'ppppfpp'],
  ['§5.6.7: asctime-date, row H17', { IUS: L_ASCTIME }, 'ppppfpp', 'ppppfpp'],
  ['§13.1.4, row H112', { IUS: BEFORE }, 'ffpfffp', 'ffpfffp'],
  ['§13.1.4, row H112', { IUS: OLD }, 'ffpfffp', 'ffpfffp'],
  ['§13.1.4, row H112', { IUS: AFTER }, 'ppppppp', 'ppppppp'],
  ['§13.1.4, row H112', { IUS: FUTURE }, 'ppppppp', 'ppppppp'],
  ['§13.1.4: no HTTP-date, row H114', { IUS: 'banana' }, 'ppppppp', 'ppppppp'],
  ['§13.1.4: no HTTP-date, row H114', { IUS: '1990-01-01T00:00:00Z' }, 'ppppppp', 'ppppppp'],
  ['§13.1.4: several members, row H115', { IUS: `${OLD}, ${OLD}` }, 'ppppppp', 'ppppppp'],
  ['§13.1.4: no HTTP-date, row H114', { IUS: '' }, 'ppppppp', 'ppppppp'],
  ['§13.1.4: ignored beside If-Match, row H113', { IM: '"a"', IUS: OLD }, 'pfffppf', 'pfffppf'],
  ['§13.1.4: ignored beside If-Match, row H113', { IM: '"x"', IUS: L }, 'fffffff', 'fffffff'],
  ['§13.1.4: ignored beside If-Match, row H113', { IM: '*', IUS: OLD }, 'ppppppf', 'ppppppf'],
  ['§13.1.4: ignored beside a malformed If-Match', { IM: 'abc', IUS: OLD }, 'mmmmmmm', 'mmmmmmm'],

  ['§13.1.2, rows H122 and H123', { INM: '"a"' }, 'npppnnp', 'fpppffp'],
  ['§13.1.2: weak comparison, row H120', { INM: 'W/"a"' }, 'npppnnp', 'fpppffp'],
  ['§13.1.2: weak comparison, row H120', { INM: '"w"' }, 'pnppppp', 'pfppppp'],
  ['§13.1.2: weak comparison, row H120', { INM: 'W/"w"' }, 'pnppppp', 'pfppppp'],
  ['§13.1.2: another variant is not the one a read selects', { INM: '"b"' }, 'ppppppp', 'pppppfp'],
  ['§13.1.2, row H119, threat 42', { INM: '*' }, 'nnnnnnp', 'ffffffp'],
  ['§13.1.2, row H121', { INM: '"x"' }, 'ppppppp', 'ppppppp'],
  ['§5.3: several lines, row H8', { INM: '"x", "a"' }, 'npppnnp', 'fpppffp'],
  ['threat 41', { INM: '"x" ,\t"a"' }, 'npppnnp', 'fpppffp'],
  ['§5.6.1.2: empty members, row H12', { INM: ', ,"a"' }, 'npppnnp', 'fpppffp'],
  ['an empty list matches nothing', { INM: '' }, 'ppppppp', 'ppppppp'],
  ['threat 40: ignored on a read only', { INM: 'abc' }, 'ppppppp', 'mmmmmmm'],
  ['threat 40: ignored on a read only', { INM: '"a", x' }, 'ppppppp', 'mmmmmmm'],
  ['threat 40: ignored on a read only', { INM: '*, *' }, 'ppppppp', 'mmmmmmm'],

  ['§13.1.3, rows H124, H125 and H127, threat 46', { IMS: L }, 'nnpnpnp', 'ppppppp'],
  ['§5.6.7: rfc850-date, row H16', { IMS: L_850 }, 'nnpnpnp', 'ppppppp'],
  ['§5.6.7: asctime-date, row H17', { IMS: L_ASCTIME }, 'nnpnpnp', 'ppppppp'],
  ['§13.1.3, row H125', { IMS: BEFORE }, 'ppppppp', 'ppppppp'],
  ['§13.1.3, row H125', { IMS: OLD }, 'ppppppp', 'ppppppp'],
  ['§13.1.3, row H125', { IMS: AFTER }, 'nnpnnnp', 'ppppppp'],
  ['§13.1.3, row H125', { IMS: FUTURE }, 'nnpnnnp', 'ppppppp'],
  ['§13.1.3: no HTTP-date, row H127', { IMS: 'banana' }, 'ppppppp', 'ppppppp'],
  ['§13.1.3: no HTTP-date, row H127, threat 47', { IMS: '2030' }, 'ppppppp', 'ppppppp'],
  ['§13.1.3: several members, row H127', { IMS: `${L}, ${L}` }, 'ppppppp', 'ppppppp'],
  ['§13.1.3: ignored beside If-None-Match, row H126', { INM: '"x"', IMS: L }, 'ppppppp', 'ppppppp'],
  ['§13.1.3: ignored beside If-None-Match, row H126', { INM: '"a"', IMS: OLD }, 'npppnnp', 'fpppffp'],
  ['§13.1.3: ignored beside a malformed If-None-Match', { INM: 'abc', IMS: L }, 'ppppppp', 'mmmmmmm'],
  ['§13.1.3: ignored beside an empty If-None-Match', { INM: '', IMS: L }, 'ppppppp', 'ppppppp'],

  ['§13.2.2 steps 1 and 3, row H128', { IM: '"a"', INM: '"a"' }, 'nfffnnf', 'fffffff'],
  ['§13.2.2 steps 1 and 3', { IM: '"a"', INM: '"x"' }, 'pfffppf', 'pfffppf'],
  ['§13.2.2 step 1 ends it', { IM: '"x"', INM: '"a"' }, 'fffffff', 'fffffff'],
  ['§13.2.2 steps 1 and 3', { IM: '*', INM: '*' }, 'nnnnnnf', 'fffffff'],
  ['§13.2.2 steps 1 and 4', { IM: '"a"', IMS: L }, 'nfffpnf', 'pfffppf'],
  ['§13.2.2 steps 1 and 4', { IM: '"a"', IMS: OLD }, 'pfffppf', 'pfffppf'],
  ['§13.2.2 steps 2 and 3, row H129', { IUS: L, INM: '"a"' }, 'npppfnp', 'fpppffp'],
  ['§13.2.2 step 2 ends it', { IUS: OLD, INM: '"a"' }, 'ffpfffp', 'ffpfffp'],
  ['§13.2.2 steps 2 and 3', { IUS: AFTER, INM: '*' }, 'nnnnnnp', 'ffffffp'],
  ['§13.2.2 steps 2 and 4', { IUS: L, IMS: L }, 'nnpnfnp', 'ppppfpp'],
  ['§13.2.2 steps 2 and 4', { IUS: OLD, IMS: L }, 'ffpfffp', 'ffpfffp'],
  ['§13.2.2: the first malformed field decides', { IM: 'abc', INM: '*' }, 'mmmmmmm', 'mmmmmmm'],
  ['§13.2.2 step 1 ends it', { IM: '"x"', INM: 'abc' }, 'fffffff', 'fffffff'],
  ['§13.2.2 steps 1 and 3', { IM: '"a"', INM: 'abc' }, 'pfffppf', 'mfffmmf'],
  ['§13.2.2: all four', { IM: '"a"', IUS: OLD, INM: '"x"', IMS: L }, 'pfffppf', 'pfffppf'],
  ['§13.2.2: all four', { IM: '"a"', IUS: OLD, INM: '"a"', IMS: OLD }, 'nfffnnf', 'fffffff'],
  ['§13.2.2: three', { IUS: L, INM: '"x"', IMS: L }, 'ppppfpp', 'ppppfpp'],
]

function conditionsOf(short: Readonly<Record<string, string>>): Conditions {
  return Object.fromEntries(Object.entries(short).map(([name, value]) => [fields[name], value]))
}

describe('evaluatePreconditions', () => {
  it.each(ROWS)('(RFC 9110 %s) %j: reads %s, writes %s', (_source, short, reads, writes) => {
    const conditions = conditionsOf(short)
    for (const [methods, letters] of [
      [READS, reads],
      [WRITES, writes],
    ] as const) {
      for (const method of methods) {
        const outcomes = STATES.map((state) => evaluatePreconditions(conditions, state, method, NOW).outcome)
        expect(outcomes, method).toEqual([...letters].map((letter) => OUTCOMES[letter as keyof typeof OUTCOMES]))
      }
    }
  })

  it.each<[string, Readonly<Record<string, string>>, PreconditionResult['field']]>([
    ['GET', { IM: '"x"', INM: '"a"' }, 'If-Match'],
    ['GET', { IM: 'abc' }, 'If-Match'],
    ['PUT', { IUS: OLD, INM: '"a"' }, 'If-Unmodified-Since'],
    ['PUT', { INM: '"a"' }, 'If-None-Match'],
    ['GET', { INM: '*' }, 'If-None-Match'],
    ['PUT', { INM: 'abc' }, 'If-None-Match'],
    ['GET', { IMS: L }, 'If-Modified-Since'],
    ['GET', { IMS: OLD }, undefined],
    ['GET', {}, undefined],
  ])('%s %j names the field that decided: %s', (method, short, field) => {
    expect(evaluatePreconditions(conditionsOf(short), STATES[0], method, NOW).field).toBe(field)
  })

  it('compares whole seconds: a date within the same second is not later (RFC 9110 §13.1.4, row H117)', () => {
    for (const milliseconds of [0, 1, 700, 999]) {
      const state = {
        entityTags: [],
        lastModified: Date.UTC(1994, 10, 15, 8, 12, 31, milliseconds),
        dateIsStrong: true,
      }
      expect(evaluatePreconditions({ ifUnmodifiedSince: L }, state, 'PATCH', NOW).outcome).toBe('proceed')
      expect(evaluatePreconditions({ ifModifiedSince: L }, state, 'GET', NOW).outcome).toBe('not-modified')
      expect(evaluatePreconditions({ ifUnmodifiedSince: BEFORE }, state, 'PATCH', NOW).outcome).toBe('failed')
      expect(evaluatePreconditions({ ifModifiedSince: BEFORE }, state, 'GET', NOW).outcome).toBe('proceed')
    }
  })

  it('takes a date as proof only where the store says that it is strong (RFC 9110 §8.8.2.2, row H45, threat 46)', () => {
    for (const dateIsStrong of [false, undefined]) {
      const state: Validators = { entityTags: [], lastModified, dateIsStrong }
      expect(evaluatePreconditions({ ifUnmodifiedSince: L }, state, 'PATCH', NOW).outcome).toBe('failed')
      expect(evaluatePreconditions({ ifModifiedSince: L }, state, 'GET', NOW).outcome).toBe('proceed')
    }
  })

  it('places a two-digit year by the clock that it is given (RFC 9110 §5.6.7, row H18)', () => {
    const condition = { ifUnmodifiedSince: 'Saturday, 01-Jan-50 00:00:00 GMT' }
    expect(evaluatePreconditions(condition, STATES[0], 'PUT', Date.UTC(2026, 0, 1)).outcome).toBe('proceed')
    expect(evaluatePreconditions(condition, STATES[0], 'PUT', Date.UTC(1996, 0, 1)).outcome).toBe('failed')
  })
})

describe('evaluateIfRange', () => {
  // The states as above, without X: there is no range of nothing.
  it.each<[string, string, string]>([
    ['§13.1.5: strong comparison, row H160', '"a"', 'tffftt'],
    ['§13.1.5: strong comparison, row H160', 'W/"a"', 'ffffff'],
    ['§13.1.5: a weak tag never matches, row H160', 'W/"w"', 'ffffff'],
    ['§13.1.5: a weak tag never matches, row H160', '"w"', 'ffffff'],
    ['§13.1.5: only the selected variant', '"b"', 'ffffff'],
    ['§13.1.5: stale, row H160', '"x"', 'ffffff'],
    ['§13.1.5: one tag, no list, row H164', '"x" "a"', 'ffffff'],
    ['§13.1.5: one tag, no list, threat 51', '"a", "a"', 'ffffff'],
    ['§13.1.5: one tag, no list, threat 51', '"a",', 'ffffff'],
    ['§13.1.5: no wildcard', '*', 'ffffff'],
    ['§13.1.5: quotes belong to it', 'a', 'ffffff'],
    ['§13.1.5: not part of another', 'x"a"', 'ffffff'],
    ['§13.1.5: empty', '', 'ffffff'],
    ['§13.1.5: exact date, row H161, threat 51', L, 'ttftft'],
    ['§13.1.5: exact date in rfc850 form', L_850, 'ttftft'],
    ['§13.1.5: exact date in asctime form', L_ASCTIME, 'ttftft'],
    ['§13.1.5: not earlier, row H161', BEFORE, 'ffffff'],
    ['§13.1.5: not later, row H161', AFTER, 'ffffff'],
    ['§13.1.5: not later, row H161', FUTURE, 'ffffff'],
    ['§13.1.5: no HTTP-date, row H161', '1994-11-15T08:12:31Z', 'ffffff'],
    ['§13.1.5: a Wednesday is not a weak tag', 'Wed, 15 Nov 1994 08:12:31 GMT', 'ttftft'],
  ])('(RFC 9110 %s) %j: %s', (_source, field, letters) => {
    const results = STATES.slice(0, -1).map((state) => evaluateIfRange(field, state!, NOW))
    expect(results).toEqual([...letters].map((letter) => letter === 't'))
  })
})
