/** Ways to write one path, for requests that are sent byte by byte: clients would normalise them. */

/** Spellings of a path below a prefix (empty for the root) that some program takes for that path. */
export function spellSecret(prefix: string): readonly string[] {
  const path = `${prefix}/secret`
  const [, first = '', ...rest] = path.split('/')
  const tail = rest.map((segment) => `/${segment}`).join('')
  const escapeFirst = (text: string): string => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`
  const escapeAll = (text: string): string =>
    text.replace(/./g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)
  const inOriginForm = [
    ...[path, `${path}/`, `${path}?a=b`, `${path}?/../..`, `${path};a=b`, `${path}/.`, `${path}/x/..`],
    ...[`/${escapeFirst(first)}${tail}`, `/${escapeAll(first)}${tail}`, `/${escapeFirst(escapeFirst(first))}${tail}`],
    ...[
      `/%25${escapeFirst(first).slice(1)}${tail}`,
      `/%2525${escapeFirst(first).slice(1)}${tail}`,
      escapeAll(path).replace('%2F', '/'),
    ],
    ...[
      `/.${path}`,
      `/x/..${path}`,
      `/x/./..${path}`,
      `/x/y/../..${path}`,
      `/..${path}`,
      `/../..${path}`,
      `/...${path}/`,
    ],
    ...[`/%2e${path}`, `/x/%2e%2e${path}`, `/x/.%2E${path}`, `/x/..%2f${path.slice(1)}`, `/x/%252e%252e${path}`],
    ...[`/x/..%5c${path.slice(1)}`, `/x/..\\${path.slice(1)}`, `/x\\..${path}`, `/x/..;${path}`, `/x/..;a=b${path}`],
    ...[
      `/${path}`,
      `//${path}`,
      `/y/..//${path}`,
      `//y${path}`,
      `/\\y${path}`,
      `/\\${path}`,
      `\\${path}`,
      `/%2f${path}`,
    ],
    ...[
      `/%5C${path}`,
      `/%2fy${path}`,
      `//y/x/..${path}`,
      `/\\${path.slice(1)}`,
      `/;${path}`,
      `/;a${path}`,
      `/.;${path}`,
    ],
    ...[path.toUpperCase(), `/${first.toUpperCase()}${tail}`, `/${first}${tail.toUpperCase()}`],
    ...[
      `/${first};v=1${tail}`,
      `/${first}%3bv=1${tail}`,
      `/${first}/.${tail}`,
      `/${first}/${tail}`,
      `/${first}\\${tail}`,
    ],
    ...[
      `/${first}%2f${tail.slice(1)}`,
      `/${first}%5c${tail.slice(1)}`,
      `/${first}/x/..${tail}`,
      `/x/../${first}/y/..${tail}`,
    ],
    ...[
      `${path}#x`,
      `${path}%23x`,
      `${path}%3Fx`,
      `${path}%00`,
      `${path}%20`,
      `/%09${path.slice(1)}`,
      `/%0a${path.slice(1)}`,
    ],
    ...[`/%c0%af${path.slice(1)}`, `${path}%zz`, `${path}/%ff`, `/%zz/..${path}`],
    ...[`/x%2fy/..${path}`, `/x%2fy/%2e%2e${path}`, `/x%5cy/%2e.${path}`, `/x%252fy/%2e%2e${path}`, `${path}\xa0`],
    ...[`*${path}`, `*${path.slice(1)}`],
  ]
  const inOtherForms = [
    path,
    `/${escapeFirst(first)}${tail}`,
    `/x/..${path}`,
    `//y${path}`,
    `/${path}`,
    path.toUpperCase(),
  ].flatMap((path) => [
    `http://host${path}`,
    `HTTP://user@host:80${path}`,
    `https://host${path}`,
    `http://${path}`,
    `http:///host${path}`,
    `ftp://host${path}`,
  ])
  const inNoForm = [`http:${path}`, `http://host?${path}`, `http://host#${path}`, `http://y%2f${path.slice(1)}`]
  return [...new Set([...inOriginForm, ...inOtherForms, ...inNoForm, '*'])]
}

/** Targets that are not below `/api` in any reading, and one that is below the root. */
export const OUTSIDE: readonly string[] = [
  ...['/', '/other', '/apis/secret', '/api2', '/ap', '/x/api/secret', '/secret', '/other?/api/secret', '/a%70', '/apj'],
  ...[
    '/api.secret',
    '/api-secret',
    '/other/%2e%2e/x',
    '/other/../secret',
    '/@scope%2Fname',
    '/%C3%BC',
    '/a;api/secret',
  ],
  ...['http://api/secret', 'http://host/other', 'http://host'],
]

/** Whether a target is below a prefix for a program that normalises all that there is to normalise, in the usual order. */
export function isBelow(target: string, prefix: string): boolean {
  const decode = (text: string): string =>
    text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  const readAsUrl = (text: string): string => {
    try {
      return new URL(text, 'http://host').pathname
    } catch {
      return text
    }
  }
  const path = readAsUrl(target.replace(/^[a-z]+:\/\/[^/]*/i, 'http://host'))
  const behindHost = /^[/*]/.test(target) ? readAsUrl(`http://host${target}`) : path
  return [path, readAsUrl(path), decode(decode(path)), readAsUrl(target), behindHost].some((path) => {
    const plain = readAsUrl(
      `/${decode(decode(path))}`
        .replaceAll('\\', '/')
        .replace(/;[^/]*/g, '')
        .replace(/\/{2,}/g, '/'),
    )
    return `${plain.toLowerCase()}/`.startsWith(`${prefix}/`)
  })
}
