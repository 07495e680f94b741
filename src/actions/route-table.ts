import { parseIntegerName } from '../stores/rules.ts'
import type { CollectionFacts, Route } from './route.ts'

/** What a path leads to. */
export interface RouteTable {
  find(path: string): Route | undefined
  /** All routes that paths one segment below a pattern may have. */
  findBelow(pattern: string): readonly Route[]
  /** Whether every path belongs to the service. */
  readonly isOpen: boolean
  /** Whether any resource has QUERY. */
  readonly hasQuery: boolean
}

/** A route and the paths it serves. */
export interface RouteEntry {
  /** Literal segments and `{names}`, as in `/users/{id}`; the last one may be a `{name...}` of any depth. */
  readonly pattern: string
  readonly route: Route
  /** Whether a value may stand for the last `{name}`; any non-empty value may when it is left out. */
  readonly accepts?: ((name: string) => boolean) | undefined
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Which names the items of a collection may have. */
export const NAME_RULES: Readonly<Record<CollectionFacts['ids'], RouteEntry['accepts']>> = {
  integer: (name) => parseIntegerName(name) !== undefined,
  uuid: (name) => UUID.test(name),
  string: undefined,
}

interface Node {
  readonly literals: Map<string, Node>
  parameter: Node | undefined
  entry: RouteEntry | undefined
  /** What is below in any depth: `{path...}`. */
  deep: RouteEntry | undefined
}

/**
 * Makes a table that finds a route in time that depends on the length of the path only. Literal segments win over names, and
 * names over names of any depth.
 * @throws TypeError for a malformed pattern, or two patterns for the same paths
 */
export function createRouteTable(entries: readonly RouteEntry[]): RouteTable {
  const root = createNode()
  for (const entry of entries) add(root, entry)
  return {
    isOpen: false,
    hasQuery: entries.some(({ route }) => route.actions.QUERY !== undefined),
    find: (path) => (path === '/' ? root.entry?.route : find(root, path, 1)),
    findBelow: (pattern) => findBelow(root, pattern === '/' ? [] : pattern.slice(1).split('/')),
  }
}

/** Before there are any. */
export const NO_ROUTES: RouteTable = createRouteTable([])

/**
 * Makes the table of a service without definitions: the first entry is for every path but those of the others, and but one
 * that ends with a slash, which would name a second time what is named without it.
 */
export function createOpenTable([open, ...others]: readonly RouteEntry[]): RouteTable {
  return {
    isOpen: true,
    hasQuery: false,
    find(path) {
      const own = others.find(({ pattern }) => pattern === path)
      if (own !== undefined) return own.route
      return path.length > 1 && path.endsWith('/') ? undefined : open!.route
    },
    findBelow: () => [open!, ...others].map(({ route }) => route),
  }
}

/** Keeps the collection of a path from a pattern such as `/{tenant}`, which stands for other names. */
export function reserve(table: RouteTable, collection: string): RouteTable {
  return {
    ...table,
    find: (path) => (path === collection ? undefined : table.find(path)),
    findBelow: (pattern) => table.findBelow(pattern).filter((route) => route.pattern !== `${collection}/{id}`),
  }
}

/** A pattern without its names: patterns of one shape are for the same paths. */
export function shapeOf(pattern: string): string {
  return pattern.replaceAll(/\{[^}]*\}/g, '{}')
}

function createNode(): Node {
  return { literals: new Map(), parameter: undefined, entry: undefined, deep: undefined }
}

/** What no segment of a decoded path is, or what is meant otherwise: a `:name`, a query, an escape. */
const NEVER_PLAIN = /[{}?#\\\x00-\x1f\x7f]|^:|^\*+$|^\.\.?$|%[0-9a-f]{2}/i

function add(root: Node, entry: RouteEntry): void {
  const { pattern } = entry
  if (!pattern.startsWith('/') || (pattern !== '/' && pattern.endsWith('/'))) {
    throw new TypeError(`The pattern "${pattern}" must begin with a slash and not end with one.`)
  }
  const names = new Set<string>()
  let node = root
  const segments = pattern === '/' ? [] : pattern.slice(1).split('/')
  for (const [index, segment] of segments.entries()) {
    // It stands for all segments that are left.
    if (/^\{[A-Za-z_]\w*\.\.\.\}$/.test(segment)) {
      if (index < segments.length - 1) {
        throw new TypeError(`The pattern "${pattern}" has ${segment} before its end: nothing is left for what follows.`)
      }
      if (names.has(segment.replace('...', ''))) throw hasTwice(pattern, segment)
      if (node.deep !== undefined) throw haveSamePaths(node.deep, entry)
      node.deep = entry
      return
    }
    if (/^\{[A-Za-z_]\w*\}$/.test(segment)) {
      if (names.has(segment)) throw hasTwice(pattern, segment)
      names.add(segment)
      node = node.parameter ??= createNode()
    } else if (segment === '' || NEVER_PLAIN.test(segment)) {
      throw isNotPlain(pattern, segment)
    } else {
      let next = node.literals.get(segment)
      if (next === undefined) node.literals.set(segment, (next = createNode()))
      node = next
    }
  }
  if (node.entry !== undefined) throw haveSamePaths(node.entry, entry)
  node.entry = entry
}

function isNotPlain(pattern: string, segment: string): TypeError {
  const name = segment.startsWith('*') ? 'path...' : /^:([A-Za-z_]\w*)$/.exec(segment)?.[1]
  const advice = name === undefined ? '' : ` Write {${name}}.`
  return new TypeError(
    `The pattern "${pattern}" has a segment that is neither plain nor a {name}: "${segment}".${advice}`,
  )
}

function hasTwice(pattern: string, segment: string): TypeError {
  // The definition says `/users/{id}`; the pattern of its items is made here.
  const reason = pattern.endsWith('/{id}/{id}') ? ': a collection adds /{id} for its items.' : '.'
  return new TypeError(`The pattern "${pattern}" has the name ${segment} twice${reason}`)
}

function haveSamePaths(one: RouteEntry, other: RouteEntry): TypeError {
  const wrong = `The patterns "${one.pattern}" and "${other.pattern}" are for the same paths`
  if (one.pattern !== other.pattern) return new TypeError(`${wrong}.`)
  // One of them is not written in `resources`: that of an item, a file, a monitor or the description.
  return new TypeError(`${wrong}: collections and the options "operations" and "openapi" add paths of their own.`)
}

function find(node: Node, path: string, from: number): Route | undefined {
  const slash = path.indexOf('/', from)
  const segment = slash < 0 ? path.slice(from) : path.slice(from, slash)
  if (segment === '') return undefined // a slash at the end names nothing
  const literal = node.literals.size === 0 ? undefined : node.literals.get(segment)
  if (literal !== undefined) {
    const route = slash < 0 ? literal.entry?.route : find(literal, path, slash + 1)
    if (route !== undefined) return route
  }
  const named = node.parameter === undefined ? undefined : findNamed(node.parameter, path, segment, slash)
  if (named !== undefined || node.deep === undefined) return named
  return path.endsWith('/') ? undefined : node.deep.route
}

function findNamed(node: Node, path: string, segment: string, slash: number): Route | undefined {
  if (slash >= 0) return find(node, path, slash + 1)
  const { entry } = node
  return entry === undefined || entry.accepts?.(segment) === false ? undefined : entry.route
}

function findBelow(root: Node, pattern: readonly string[]): readonly Route[] {
  let nodes: readonly Node[] = [root]
  const deep: Route[] = []
  for (const segment of [...pattern, '{any}']) {
    const isName = segment.startsWith('{')
    for (const node of nodes) if (node.deep !== undefined) deep.push(node.deep.route)
    nodes = nodes.flatMap(({ literals, parameter }) => {
      const named = isName ? [...literals.values()] : literals.has(segment) ? [literals.get(segment)!] : []
      // A literal segment wins; where nothing matches below it, the name is tried.
      return parameter === undefined ? named : [...named, parameter]
    })
  }
  return [...nodes.flatMap(({ entry }) => entry?.route ?? []), ...deep]
}
