import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isToken68, parseAuthorization, parseAuthParameters } from '../../src/protocol/authorization.ts'
import { selectRanges } from '../../src/protocol/byte-range.ts'
import {
  cleanFilename,
  formatContentDisposition,
  parseContentDisposition,
  parseExtendedValue,
} from '../../src/protocol/content-disposition.ts'
import { isOrigin, matchesOriginPattern, parseOriginPattern } from '../../src/protocol/cors.ts'
import { formatHttpDate, parseHttpDate } from '../../src/protocol/dates.ts'
import {
  formatQuotedString,
  isToken,
  mergeVary,
  parseParameters,
  parseQuotedString,
  skipToken,
  skipWhitespace,
  splitList,
  trimWhitespace,
} from '../../src/protocol/field-value.ts'
import { decideForwardedTransport, parseForwarded } from '../../src/protocol/forwarded.ts'
import {
  isMediaRange,
  parseAccept,
  parseMediaType,
  refusesIdentity,
  selectMediaType,
} from '../../src/protocol/media-type.ts'
import {
  type Conditions,
  evaluateIfRange,
  evaluatePreconditions,
  formatEntityTag,
  isEntityTag,
  isWeakTag,
  matchEntityTags,
  type Validators,
} from '../../src/protocol/preconditions.ts'
import { parsePrefer } from '../../src/protocol/prefer.ts'
import {
  formatOrigin,
  formatPath,
  isHost,
  parseAuthority,
  parseRequestTarget,
  parseTargetOrigin,
} from '../../src/protocol/request-line.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'

const NOW = Date.UTC(2026, 5, 15)
const CURRENT: Validators = { entityTags: ['"a"', 'W/"b"'], lastModified: NOW - 1e9, dateIsStrong: true }
const OFFERS = ['application/json', 'text/plain;charset=utf-8', 'text/html'].map((type) => parseMediaType(type)!)

/** Everything that reads what a client wrote. */
const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  isToken,
  isToken68,
  isEntityTag,
  isMediaRange,
  trimWhitespace,
  splitList,
  parseQuotedString: (text) => parseQuotedString(text, 0),
  parseParameters: (text) => parseParameters(text, 0),
  'parseParameters behind ";"': (text) => parseParameters(`;${text}`, 0),
  parseHttpDate: (text) => parseHttpDate(text, NOW),
  'matchEntityTags, strong': (text) => matchEntityTags(text, CURRENT.entityTags, 'strong'),
  'matchEntityTags, weak': (text) => matchEntityTags(text, CURRENT.entityTags, 'weak'),
  'evaluatePreconditions, every field': (text) => {
    const fields: Conditions = { ifMatch: text, ifNoneMatch: text, ifModifiedSince: text, ifUnmodifiedSince: text }
    return [evaluatePreconditions(fields, CURRENT, 'PUT', NOW), evaluatePreconditions(fields, undefined, 'GET', NOW)]
  },
  evaluateIfRange: (text) => evaluateIfRange(text, CURRENT, NOW),
  selectRanges: (text) => selectRanges(text, 10_000),
  'selectRanges behind "bytes="': (text) => selectRanges(`bytes=${text}`, 10_000),
  parseMediaType,
  parseAccept,
  selectMediaType: (text) => selectMediaType(text, OFFERS),
  refusesIdentity,
  parseRequestTarget,
  'parseRequestTarget behind "/"': (text) => parseRequestTarget(`/${text}`),
  'parseRequestTarget behind "http://"': (text) => parseRequestTarget(`http://${text}`),
  parsePrefer,
  parseContentDisposition,
  'parseContentDisposition behind "attachment;"': (text) => parseContentDisposition(`attachment;${text}`),
  parseExtendedValue,
  'parseExtendedValue behind "UTF-8\'\'"': (text) => parseExtendedValue(`UTF-8''${text}`),
  cleanFilename,
  'formatContentDisposition of a name': (text) => formatContentDisposition('attachment', text),
  formatQuotedString,
  'mergeVary with another': (text) => mergeVary(text, 'Accept'),
  parseAuthorization,
  parseAuthParameters,
  parseForwarded,
  'decideForwardedTransport, both fields': (text) => decideForwardedTransport(text, text),
  isHost,
  'isHost behind "["': (text) => isHost(`[${text}]`),
  parseAuthority,
  parseTargetOrigin,
  'parseTargetOrigin behind "http://"': (text) => parseTargetOrigin(`http://${text}`),
  isOrigin,
  'isOrigin behind "https://"': (text) => isOrigin(`https://${text}`),
  parseOriginPattern,
  'parseOriginPattern behind "https://*."': (text) => parseOriginPattern(`https://*.${text}`),
}

/** Any text at all, and text made of the characters that grammars care about. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ maxLength: 200 }),
  fc
    .array(fc.constantFrom(...'"\\,;=*/ \t%W-0aZ.()\'\u0000\u007f\u00e9\ud800'), { maxLength: 60 })
    .map((chars) => chars.join('')),
  fc
    .array(
      fc.constantFrom(
        'bytes=',
        '0-0',
        ',',
        '; ',
        'q=',
        '"',
        '\\',
        'W/',
        '"a"',
        '*',
        '%2',
        '%41',
        '%',
        "''",
        'a/b',
        '//',
      ),
      { maxLength: 30 },
    )
    .map((parts) => parts.join('')),
)

describe('every parser of a field', () => {
  it.each(Object.entries(PARSERS))('%s throws on no text whatever (style: parse never throws)', (_name, parse) => {
    fc.assert(
      fc.property(anyText, (text) => {
        parse(text)
      }),
      { numRuns: 300 },
    )
  })

  const SIZE = 16 * 1024
  const fill = (unit: string, before = '', after = ''): string =>
    before + unit.repeat(Math.ceil((SIZE - before.length - after.length) / unit.length)) + after
  const SHAPES: Readonly<Record<string, string>> = {
    'tags without end': fill('"a",'),
    'weak tags': fill('W/"a",'),
    'tags, the last malformed': fill('"a",', '', '"'),
    'weak prefixes': fill('W/W/'),
    blanks: fill(' '),
    tabs: fill('\t'),
    'blanks and tabs before a letter': fill(' \t', '', 'x'),
    'blanks between two letters': fill(' ', 'x', 'x'),
    commas: fill(','),
    'commas and blanks': fill(' ,\t'),
    quotes: fill('"'),
    'an unterminated quote': fill('a', '"'),
    'a quote of commas': fill(',', '"', '"'),
    'unterminated quotes': fill('"a, '),
    backslashes: fill('\\'),
    'a quote of backslashes': fill('\\', '"'),
    'a quote of escapes': fill('\\"', '"', '"'),
    semicolons: fill(';'),
    'semicolons and blanks': fill(' ; '),
    'equals signs': fill('='),
    parameters: fill(';a=b'),
    'quoted parameters': fill(';a="b\\""'),
    'parameters without a value': fill(';a='),
    ranges: fill('0-0,', 'bytes='),
    'ranges without a unit': fill('0-0,'),
    'open ranges': fill('0-,', 'bytes='),
    suffixes: fill('-1,', 'bytes='),
    'minus signs': fill('-', 'bytes='),
    digits: fill('9', 'bytes='),
    'digits on both sides': fill('9', 'bytes=', `-${'9'.repeat(8000)}`),
    percent: fill('%', '/'),
    'half escapes': fill('%2', '/'),
    escapes: fill('%41', '/'),
    'escaped bytes of no character': fill('%ff', '/'),
    'escaped characters': fill('%e2%82%ac', '/'),
    'an extended value': fill('%e2%82%ac', "UTF-8''"),
    'an extended value that ends badly': fill('%e2', "UTF-8''", '%'),
    apostrophes: fill("'", 'UTF-8'),
    'a language without end': fill('a', "UTF-8'"),
    slashes: fill('/'),
    'short segments': fill('/a'),
    dots: fill('.', '/'),
    'dot segments': fill('/.'),
    'deep dot segments': fill('/..'),
    'a long scheme': fill('a', '', '://x'),
    'a long authority': fill('a', 'http://'),
    'at signs': fill('@', 'http://'),
    'media ranges': fill('a/b,'),
    'media ranges with weights': fill('a/*;q=0.1,'),
    'media types without a subtype': fill('a/'),
    'zeros of a weight': fill('0', 'a/b;q=0.'),
    preferences: fill('return=minimal,'),
    'auth parameters': fill('a="b",', 'Digest '),
    'digits alone': fill('1'),
    hops: fill('for=a;proto=http,'),
    'digits of a date': fill('0', 'Sun, '),
    weekdays: fill('Sun, '),
    'control characters': fill('\u0001'),
    'latin letters': fill('ü'),
    'other letters': fill('日'),
    'half characters': fill('\ud800'),
    'leading dots of a name': fill('. '),
    'a device name and blanks': fill(' ', 'con', 'x'),
  }

  it.each(Object.entries(SHAPES))('takes less than 5 ms for 16 kB of %s (threat 39)', MEASURED, (_name, text) => {
    expect(text.length).toBeGreaterThanOrEqual(15_000)
    for (const [name, parse] of Object.entries(PARSERS))
      expect(
        fastest(parse, () => text),
        name,
      ).toBeLessThan(5)
  })

  it('takes less than 5 ms for 16 kB of parameters, each with a name of its own (threat 39)', MEASURED, () => {
    let count = 0
    const make = () => Array.from({ length: 1800 }, () => `;a${count++}=b`).join('')
    for (const [name, parse] of Object.entries(PARSERS)) {
      expect(fastest(parse, make), name).toBeLessThan(5)
      expect(
        fastest(parse, () => make().slice(1)),
        `${name}, without the first ";"`,
      ).toBeLessThan(5)
    }
  })

  it.each(Object.entries(PARSERS))(
    '%s is done with 200 kB at once: nothing is quadratic (threat 39)',
    MEASURED,
    (_name, parse) => {
      for (const unit of ['"a",', ' ', '\\', '"', ';a=b', '%41', 'W/', ',', '0-0,', 'a/b,', '1', '1:']) {
        const text = unit.repeat(200_000 / unit.length)
        const elapsed = startProcessorClock()
        parse(text)
        // Quadratic work would take minutes.
        expect(elapsed(), unit).toBeLessThan(1000)
      }
    },
  )
})

/** Milliseconds of the fastest of a few runs: the first are slower, before they are compiled. */
function fastest(parse: (text: string) => unknown, make: () => string): number {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < 20 && best > 2; run++) {
    const text = make()
    const elapsed = startProcessorClock()
    parse(text)
    best = Math.min(best, elapsed())
  }
  return best
}

/** Whether text has no half of a surrogate pair, which no UTF-8 can express. */
function isWellFormed(text: string): boolean {
  return Buffer.from(text).toString() === text
}

describe('round trips', () => {
  const second = fc.integer({ min: Date.UTC(0, 0, 1) / 1000, max: Date.UTC(9999, 11, 31) / 1000 }).map((s) => s * 1000)

  it('parseHttpDate reads what formatHttpDate writes (RFC 9110 §5.6.7, rows H15 and H19)', () => {
    fc.assert(
      fc.property(second, (time) => {
        const text = formatHttpDate(time)
        expect(text).toMatch(
          /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/,
        )
        expect(parseHttpDate(text, NOW)).toBe(time)
      }),
    )
  })

  it('parseHttpDate reads one instant in all three forms (RFC 9110 §5.6.7, rows H15 to H17)', () => {
    const recent = fc.integer({ min: Date.UTC(1977, 0, 1) / 1000, max: Date.UTC(2076, 5, 14) / 1000 })
    fc.assert(
      fc.property(recent, (seconds) => {
        const time = seconds * 1000
        for (const form of [imfFixdate, rfc850Date, asctimeDate]) expect(parseHttpDate(form(time), NOW)).toBe(time)
      }),
    )
  })

  it('parseQuotedString reads what formatQuotedString writes (RFC 9110 §5.6.4)', () => {
    const allowed = fc
      .array(fc.integer({ min: 0, max: 255 }).filter((code) => code === 9 || (code >= 32 && code !== 127)))
      .map((codes) => String.fromCharCode(...codes))
    fc.assert(
      fc.property(allowed, (text) => {
        const written = formatQuotedString(text)
        expect(parseQuotedString(written, 0)).toEqual({ value: text, end: written.length })
      }),
    )
    fc.assert(
      fc.property(anyText, (text) => {
        expect(formatQuotedString(text)).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/)
      }),
    )
  })

  it('parseParameters reads what was written of a map (RFC 9110 §5.6.6)', () => {
    const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9a-z-]{1,8}$/)
    const value = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,12}$/)
    fc.assert(
      fc.property(fc.dictionary(name, value), fc.boolean(), (parameters, upper) => {
        const text = Object.entries(parameters)
          .map(([key, value]) => ` ;\t${upper ? key.toUpperCase() : key}=${formatQuotedString(value)}`)
          .join('')
        const parsed = parseParameters(text, 0)
        expect(parsed?.end).toBe(text.length)
        expect([...parsed!.parameters]).toEqual(Object.entries(parameters))
      }),
    )
  })

  it('splitList gives the members of which a list was made (RFC 9110 §5.6.1)', () => {
    const member = fc.oneof(
      fc.stringMatching(/^[!-+\--~]([ -+\--~]{0,6}[!-+\--~])?$/).filter((text) => !text.includes('"')),
      fc.stringMatching(/^[\t\x20-\x7e]{0,10}$/).map(formatQuotedString),
    )
    fc.assert(
      fc.property(fc.array(member), fc.constantFrom(',', ', ', ' ,\t', ', ,', ' , , '), (members, separator) => {
        expect(splitList(members.join(separator))).toEqual(members)
      }),
    )
  })

  it('parseRequestTarget reads what formatPath writes, and only that spelling reads back (RFC 3986 §3.3)', () => {
    const segment = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }),
      fc.constantFrom('%2e', '...', '.a', 'a b', '%', '日本', "!'()*"),
    )
    const valid = segment.filter(
      (text) => text !== '.' && text !== '..' && isWellFormed(text) && !/[/\\\x00-\x1f\x7f]/.test(text),
    )
    fc.assert(
      fc.property(fc.array(valid), fc.boolean(), (segments, trailing) => {
        const path = `/${segments.join('/')}${trailing && segments.length > 0 ? '/' : ''}`
        const written = formatPath(path)
        expect(written).toMatch(/^[\x21-\x7e]+$/)
        expect(parseRequestTarget(`${written}?a=/../b`)).toEqual({ path, query: 'a=/../b' })
        expect(parseRequestTarget(`http://other${written}`)?.path).toBe(path)
      }),
    )
  })

  it('parseRequestTarget lets no path through that names anything but one resource (rows H6, threats 20 to 25)', () => {
    const raw = fc
      .array(
        fc.constantFrom(
          '/',
          '.',
          '..',
          '%2e',
          '%2f',
          '%5c',
          '%00',
          '%7f',
          'a',
          '%',
          '%41',
          '\\',
          '#',
          'é',
          '%c3%a9',
          '?',
        ),
      )
      .map((parts) => `/${parts.join('')}`)
    fc.assert(
      fc.property(raw, (target) => {
        const parsed = parseRequestTarget(target)
        if (parsed === undefined) return
        const segments = parsed.path.slice(1).split('/')
        for (const [index, segment] of segments.entries()) {
          expect(['.', '..']).not.toContain(segment)
          expect(segment).not.toMatch(/[\\\x00-\x1f\x7f]/)
          if (index < segments.length - 1) expect(segment).not.toBe('')
        }
        expect(parseRequestTarget(formatPath(parsed.path))?.path).toBe(parsed.path)
      }),
      { numRuns: 2000 },
    )
  })

  it('parseContentDisposition reads the name that formatContentDisposition writes (RFC 6266, rows D8 and D9)', () => {
    const name = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), anyText)
    fc.assert(
      fc.property(name, fc.constantFrom('inline' as const, 'attachment' as const), (name, type) => {
        const field = formatContentDisposition(type, name)
        expect(field).toMatch(/^[\x20-\x7e]*$/)
        const parsed = parseContentDisposition(field)
        expect(parsed?.type).toBe(type)
        expect(parsed?.filename ?? '').toBe(cleanFilename(name))
      }),
    )
  })

  it('cleanFilename has nothing left to clean in what it returns (rows D5 and D6)', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), anyText), (name) => {
        const clean = cleanFilename(name)
        expect(cleanFilename(clean)).toBe(clean)
        expect(clean.length).toBeLessThanOrEqual(255)
        expect(clean).not.toMatch(/[/\\\x00-\x1f\x7f]|^\./)
        expect(isWellFormed(clean)).toBe(true)
      }),
    )
  })

  it('formatEntityTag makes one well-formed strong tag of each version (RFC 9110 §8.8.3, rows H39 and H40)', () => {
    const version = fc.string({ unit: 'binary' }).filter((text) => isWellFormed(text))
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(formatEntityTag(a)).toMatch(/^"[\x21\x23-\x7e]*"$/)
        expect(formatEntityTag(a) === formatEntityTag(b)).toBe(a === b)
        expect(matchEntityTags(`"x", ${formatEntityTag(a)}`, [formatEntityTag(a)], 'strong')).toBe('match')
      }),
    )
  })

  it('mergeVary keeps every name once and forgets none (RFC 9110 §12.5.5, row H98)', () => {
    const names = fc.uniqueArray(fc.constantFrom('Accept', 'Origin', 'Prefer', 'Accept-Encoding', 'Authorization'))
    fc.assert(
      fc.property(names, names, (a, b) => {
        const merged = mergeVary(a.join(', '), b.join(', '))
        expect(splitList(merged)).toEqual([...new Set([...a, ...b])])
      }),
    )
  })

  it('the scanners move forward and never past the end', () => {
    fc.assert(
      fc.property(anyText, fc.nat(200), (text, at) => {
        for (const scan of [skipToken, skipWhitespace]) {
          expect(scan(text, at)).toBeGreaterThanOrEqual(at)
          if (at <= text.length) expect(scan(text, at)).toBeLessThanOrEqual(text.length)
        }
      }),
    )
  })
})

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const two = (value: number): string => String(value).padStart(2, '0')

function clock(date: Date): string {
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`
}

function imfFixdate(time: number): string {
  const date = new Date(time)
  const day = `${DAYS[date.getUTCDay()]!.slice(0, 3)}, ${two(date.getUTCDate())} ${MONTHS[date.getUTCMonth()]}`
  return `${day} ${String(date.getUTCFullYear()).padStart(4, '0')} ${clock(date)} GMT`
}

function rfc850Date(time: number): string {
  const date = new Date(time)
  const day = `${two(date.getUTCDate())}-${MONTHS[date.getUTCMonth()]}-${two(date.getUTCFullYear() % 100)}`
  return `${DAYS[date.getUTCDay()]}, ${day} ${clock(date)} GMT`
}

function asctimeDate(time: number): string {
  const date = new Date(time)
  const day = String(date.getUTCDate()).padStart(2, ' ')
  return `${DAYS[date.getUTCDay()]!.slice(0, 3)} ${MONTHS[date.getUTCMonth()]} ${day} ${clock(date)} ${date.getUTCFullYear()}`
}

describe('origins', () => {
  const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/)
  const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
  const port = fc.oneof(fc.constant(''), fc.integer({ min: 1, max: 65535 }).map(String))
  const scheme = fc.constantFrom('http' as const, 'https' as const)

  it('that are written are origins, and are read as the URL standard reads them', () => {
    fc.assert(
      fc.property(scheme, host, port, (scheme, host, port) => {
        const origin = formatOrigin(scheme, { host, port })
        expect(isOrigin(origin)).toBe(true)
        // A last label of digits makes the host an IPv4 address, which that standard writes differently.
        fc.pre(!/(^|\.)(0x[0-9a-f]*|\d+)$/.test(host) && URL.canParse(origin))
        expect(new URL(origin).origin).toBe(origin)
      }),
    )
  })

  it('come back from their authority', () => {
    fc.assert(
      fc.property(host, port, (host, port) => {
        expect(parseAuthority(port === '' ? host : `${host}:${port}`)).toEqual({ host, port })
      }),
    )
  })

  it('match a pattern exactly when they lie below its host, as a reference decides by labels', () => {
    fc.assert(
      fc.property(scheme, host, scheme, host, fc.boolean(), (scheme, base, otherScheme, other, isBelow) => {
        const pattern = parseOriginPattern(`${scheme}://*.${base}`)!
        const candidate = isBelow ? `${other}.${base}` : other
        const [labels, baseLabels] = [candidate.split('.'), base.split('.')]
        const expected =
          scheme === otherScheme &&
          labels.length > baseLabels.length &&
          labels.slice(-baseLabels.length).join('.') === base
        expect(matchesOriginPattern(pattern, `${otherScheme}://${candidate}`)).toBe(expected)
      }),
    )
  })
})

describe('selectRanges', () => {
  type Spec = { first?: number | undefined; last?: number | undefined; text?: string | undefined }

  /** Byte by byte, as RFC 9110 §14.1.2 and §15.3.7.2 and the rulings of the design describe it. */
  function selectNaively(specs: readonly Spec[], size: number): string {
    if (size === 0 || specs.length === 0 || specs.length > 100) return 'whole'
    const wanted: number[][] = []
    for (const { first, last, text } of specs) {
      if (text !== undefined) return 'whole'
      if (first !== undefined && last !== undefined && last < first) return 'whole'
      const bytes: number[] = []
      for (let i = 0; i < size; i++) {
        if (first === undefined ? i >= size - last! : i >= first && (last === undefined || i <= last)) bytes.push(i)
      }
      if (bytes.length > 0) wanted.push(bytes)
    }
    if (wanted.length === 0) return 'unsatisfiable'
    if (specs.length > 1) {
      if (wanted.flat().length > size) return 'whole'
      const seen = new Set<number>()
      let overlaps = 0
      for (const bytes of [...wanted].sort((a, b) => a[0]! - b[0]!)) {
        if (seen.has(bytes[0]!)) overlaps++
        for (const byte of bytes) seen.add(byte)
      }
      if (overlaps > 2) return 'whole'
    }
    const owner = new Map<number, number>()
    for (const [index, bytes] of wanted.entries()) {
      for (const byte of bytes) if (!owner.has(byte)) owner.set(byte, index)
    }
    const runs: { first: number; last: number; index: number }[] = []
    for (let i = 0; i < size; i++) {
      const index = owner.get(i)
      if (index === undefined) continue
      const run = runs[runs.length - 1]
      if (run !== undefined && run.last === i - 1) {
        run.last = i
        run.index = Math.min(run.index, index)
      } else runs.push({ first: i, last: i, index })
    }
    runs.sort((a, b) => a.index - b.index)
    return runs.map(({ first, last }) => `${first}-${last}`).join(',')
  }

  const position = fc.oneof({ weight: 8, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.constantFrom(1e6, 1e15) })
  const spec: fc.Arbitrary<Spec> = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.tuple(position, fc.nat(12)).map(([first, more]) => ({ first, last: first + more })),
    },
    { weight: 2, arbitrary: position.map((first) => ({ first })) },
    { weight: 2, arbitrary: position.map((last) => ({ last })) },
    { weight: 1, arbitrary: fc.tuple(position, position).map(([first, last]) => ({ first, last })) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('-', 'a-b', '1', '--1', '1-2-3', '+1-2', '1 -2', '0x1-2').map((text) => ({ text })),
    },
  )
  const zeros = fc.constantFrom('', '', '', '0', '000')

  it('agrees with painting the bytes one by one (RFC 9110 §14.1.2, §15.3.7.2, rows H139 to H158)', () => {
    fc.assert(
      fc.property(
        fc.array(spec, { maxLength: 8 }),
        fc.oneof(fc.nat(40), fc.constant(0)),
        fc.constantFrom(',', ', ', ' ,\t', ',,', ', ,'),
        zeros,
        fc.constantFrom('bytes', 'Bytes', 'BYTES'),
        (specs, size, separator, zeros, unit) => {
          const number = (value: number | undefined) => (value === undefined ? '' : `${zeros}${value}`)
          const texts = specs.map(({ first, last, text }) => text ?? `${number(first)}-${number(last)}`)
          const selection = selectRanges(`${unit}=${texts.join(separator)}`, size)
          const shown =
            typeof selection === 'string' ? selection : selection.map(({ first, last }) => `${first}-${last}`).join(',')
          expect(shown).toBe(selectNaively(specs, size))
        },
      ),
      { numRuns: 5000 },
    )
  })

  it('never selects more bytes than there are, nor one twice, nor more than 100 parts (row H158, threat 52)', () => {
    fc.assert(
      fc.property(fc.array(spec, { maxLength: 150 }), fc.integer({ min: 1, max: 300 }), (specs, size) => {
        const texts = specs.map(({ first, last, text }) => text ?? `${first ?? ''}-${last ?? ''}`)
        const selection = selectRanges(`bytes=${texts.join(',')}`, size)
        if (typeof selection === 'string') return
        expect(selection.length).toBeGreaterThan(0)
        expect(selection.length).toBeLessThanOrEqual(100)
        const bytes = selection.flatMap(({ first, last }) =>
          Array.from({ length: last - first + 1 }, (_, i) => first + i),
        )
        expect(new Set(bytes).size).toBe(bytes.length)
        expect(bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < size)).toBe(true)
      }),
    )
  })
})

const opaque = fc.oneof(
  fc.constantFrom('a', 'b', '', 'a,b', 'a"'.slice(0, 1), 'W/', '*', ',', ';', '\\'),
  fc.stringMatching(/^[\x21\x23-\x7e\x80-\xff]{0,6}$/),
)
const tag = fc.tuple(fc.boolean(), opaque).map(([weak, text]) => `${weak ? 'W/' : ''}"${text}"`)
const separator = fc.constantFrom(',', ', ', ' , ', '\t,\t', ',,', ', ,', ' ,, ,')
const padding = fc.constantFrom('', '', ' ', ',', ', ', '\t')

const withoutWeak = (tag: string): string => tag.replace(/^W\//, '')

describe('matchEntityTags', () => {
  it('agrees with comparing the members of the list one by one (RFC 9110 §13.1, rows H42, H43 and H105)', () => {
    fc.assert(
      fc.property(
        fc.array(tag, { maxLength: 6 }),
        fc.array(tag, { maxLength: 3 }),
        separator,
        padding,
        padding,
        (members, current, separator, before, after) => {
          const field = before + members.join(separator) + after
          const strong = members.some((member) => current.some((tag) => !isWeakTag(member) && member === tag))
          const weak = members.some((member) => current.some((tag) => withoutWeak(member) === withoutWeak(tag)))
          expect(matchEntityTags(field, current, 'strong')).toBe(strong ? 'match' : 'no-match')
          expect(matchEntityTags(field, current, 'weak')).toBe(weak ? 'match' : 'no-match')
        },
      ),
      { numRuns: 3000 },
    )
  })

  it('knows a malformed field from a list as the grammar does (RFC 9110 §5.6.1, §8.8.3, row H110)', () => {
    const GRAMMAR = /^(?:[ \t]|,|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?=[ \t]*(?:,|$)))*$/
    const text = fc
      .array(fc.constantFrom('"', 'W/', 'w/', ',', ' ', '\t', 'a', '*', '"a"', 'W/"a"', '\u00e9', '\u007f', '€'))
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (field) => {
        const match = matchEntityTags(field, ['"a"'], 'weak')
        if (field === '*') expect(match).toBe('any')
        else expect(match === 'malformed').toBe(!GRAMMAR.test(field))
      }),
      { numRuns: 5000 },
    )
  })
})

describe('evaluatePreconditions', () => {
  /** A field as it was meant, beside its text. */
  type TagCondition = { text: string; meaning: 'any' | 'malformed' | readonly string[] }
  type DateCondition = { text: string; time: number | undefined }

  const BASE = Date.UTC(2020, 0, 1)
  const someTag = fc.constantFrom('"a"', '"b"', '"c,d"', 'W/"a"', 'W/"b"')
  const tagCondition: fc.Arbitrary<TagCondition> = fc.oneof(
    { weight: 1, arbitrary: fc.constant<TagCondition>({ text: '*', meaning: 'any' }) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('a', '"a', '*, "a"', '"a" "b"', 'W/a', '*,*')
        .map((text): TagCondition => ({ text, meaning: 'malformed' })),
    },
    {
      weight: 5,
      arbitrary: fc
        .tuple(fc.array(someTag, { maxLength: 3 }), separator)
        .map(([tags, separator]): TagCondition => ({ text: tags.join(separator), meaning: tags })),
    },
  )
  const instant = fc.integer({ min: -2, max: 2 }).map((seconds) => BASE + seconds * 1000)
  const dateCondition: fc.Arbitrary<DateCondition> = fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .tuple(instant, fc.constantFrom(imfFixdate, rfc850Date, asctimeDate))
        .map(([time, form]): DateCondition => ({ text: form(time), time })),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('banana', '2020-01-01T00:00:00Z', '', `${imfFixdate(BASE)}, ${imfFixdate(BASE)}`)
        .map((text): DateCondition => ({ text, time: undefined })),
    },
  )
  const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })
  const state: fc.Arbitrary<Validators | undefined> = optional(
    fc.record({
      entityTags: fc.uniqueArray(someTag, { maxLength: 2 }),
      lastModified: optional(fc.tuple(instant, fc.nat(999)).map(([time, rest]) => time + rest)),
      dateIsStrong: fc.boolean(),
    }),
  )

  interface Case {
    readonly ifMatch: TagCondition | undefined
    readonly ifNoneMatch: TagCondition | undefined
    readonly ifModifiedSince: DateCondition | undefined
    readonly ifUnmodifiedSince: DateCondition | undefined
  }

  /** The text of RFC 9110 §13.2.2, sentence by sentence, and the rulings of the design where it leaves room. */
  function evaluateNaively(fields: Case, current: Validators | undefined, method: string): string {
    const isRead = method === 'GET' || method === 'HEAD'
    const tags = current === undefined ? [] : isRead ? current.entityTags.slice(0, 1) : current.entityTags
    /** The date of the state, in whole seconds. */
    const date = current?.lastModified === undefined ? undefined : Math.trunc(current.lastModified / 1000)

    // 1. When recipient is the origin server and If-Match is present, evaluate the If-Match precondition.
    if (fields.ifMatch !== undefined) {
      const { meaning } = fields.ifMatch
      if (meaning === 'malformed') return 'malformed'
      const isTrue =
        meaning === 'any'
          ? current !== undefined
          : meaning.some((listed) => !listed.startsWith('W/') && tags.includes(listed))
      if (!isTrue) return 'failed'
    }
    // 2. When If-Match is not present and If-Unmodified-Since is present, evaluate it; ignored without a valid date on
    //    either side. A date that names two states proves nothing.
    if (fields.ifMatch === undefined && fields.ifUnmodifiedSince?.time !== undefined && date !== undefined) {
      const given = fields.ifUnmodifiedSince.time / 1000
      const isTrue = date < given || (date === given && current!.dateIsStrong === true)
      if (!isTrue) return 'failed'
    }
    // 3. When If-None-Match is present, evaluate the If-None-Match precondition.
    if (fields.ifNoneMatch !== undefined) {
      const { meaning } = fields.ifNoneMatch
      if (meaning === 'malformed') return isRead ? 'proceed' : 'malformed'
      const bare = (tag: string) => tag.replace(/^W\//, '')
      const isFalse =
        meaning === 'any' ? current !== undefined : meaning.some((listed) => tags.map(bare).includes(bare(listed)))
      if (isFalse) return isRead ? 'not-modified' : 'failed'
    }
    // 4. When the method is GET or HEAD, If-None-Match is not present, and If-Modified-Since is present, evaluate it.
    if (
      isRead &&
      fields.ifNoneMatch === undefined &&
      fields.ifModifiedSince?.time !== undefined &&
      date !== undefined
    ) {
      const given = fields.ifModifiedSince.time / 1000
      const isFalse = date < given || (date === given && current!.dateIsStrong === true)
      if (isFalse) return 'not-modified'
    }
    // 6. Otherwise, perform the requested method.
    return 'proceed'
  }

  it('agrees with the text of RFC 9110 §13.2.2 (rows H100 to H131)', () => {
    fc.assert(
      fc.property(
        fc.record<Case>({
          ifMatch: optional(tagCondition),
          ifNoneMatch: optional(tagCondition),
          ifModifiedSince: optional(dateCondition),
          ifUnmodifiedSince: optional(dateCondition),
        }),
        state,
        fc.constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'POST'),
        (fields, current, method) => {
          const conditions: Conditions = {
            ifMatch: fields.ifMatch?.text,
            ifNoneMatch: fields.ifNoneMatch?.text,
            ifModifiedSince: fields.ifModifiedSince?.text,
            ifUnmodifiedSince: fields.ifUnmodifiedSince?.text,
          }
          const { outcome } = evaluatePreconditions(conditions, current, method, NOW)
          expect(outcome).toBe(evaluateNaively(fields, current, method))
        },
      ),
      { numRuns: 10_000 },
    )
  })

  it('If-Range is true for nothing but the one strong tag or the one strong date (RFC 9110 §13.1.5, rows H160 to H164)', () => {
    const field = fc.oneof(
      someTag,
      dateCondition.map(({ text }) => text),
      anyText,
    )
    fc.assert(
      fc.property(field, state, (field, current) => {
        if (current === undefined) return
        const [tag] = current.entityTags
        const isTag = field === tag && !field.startsWith('W/')
        const time = current.lastModified === undefined ? Number.NaN : Math.trunc(current.lastModified / 1000) * 1000
        const isDate =
          !Number.isNaN(time) &&
          current.dateIsStrong === true &&
          [imfFixdate, rfc850Date, asctimeDate].some((form) => form(time) === field)
        expect(evaluateIfRange(field, current, NOW)).toBe(isTag || isDate)
      }),
      { numRuns: 3000 },
    )
  })
})
