import type { JsonObject, JsonValue } from '../core/json.ts'

const SECTIONS = ['schemas', 'responses', 'parameters', 'headers', 'securitySchemes'] as const
type Section = (typeof SECTIONS)[number]

const REFERENCE = /"#\/components\/(\w+)\/([\w.-]+)/g

export type Components = ReturnType<typeof createComponents>

/** What several parts of a description share. */
export function createComponents() {
  const sections = new Map<Section, Map<string, JsonObject>>()
  return {
    /** Adds a component, unless it is there. @returns the reference to it */
    add(section: Section, name: string, value: JsonObject): JsonObject {
      const known = sections.get(section) ?? new Map<string, JsonObject>()
      sections.set(section, known)
      if (!known.has(name)) known.set(name, value)
      return { $ref: `#/components/${section}/${name}` }
    },
    /** The schema that a reference names. */
    find: (reference: string): JsonObject | undefined =>
      sections.get('schemas')?.get(reference.replace('#/components/schemas/', '')),
    /**
     * The components that are referred to, sorted by name; empty sections are left out.
     * @param root where references begin
     */
    toJson(root: JsonValue): JsonObject {
      const used = new Set<string>()
      const follow = (value: JsonValue): void => {
        for (const [, section, name] of JSON.stringify(value).matchAll(REFERENCE)) {
          const component = sections.get(section as Section)?.get(name!)
          if (component === undefined || used.has(`${section}/${name}`)) continue
          used.add(`${section}/${name}`)
          follow(component)
        }
      }
      follow(root)
      const all: Record<string, JsonValue> = {}
      for (const section of SECTIONS) {
        // Security schemes are referred to by their names alone.
        const kept = [...(sections.get(section) ?? [])].filter(
          ([name]) => section === 'securitySchemes' || used.has(`${section}/${name}`),
        )
        if (kept.length > 0) all[section] = sortMembers(new Map(kept))
      }
      return all
    },
  }
}

/** Members in the order of their names, by code units: the same in every locale. */
export function sortMembers(members: ReadonlyMap<string, JsonValue>): JsonObject {
  return Object.fromEntries([...members].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** A name for identifiers: `/config/app` becomes `ConfigApp`, `User account` becomes `UserAccount`. */
function pascalCase(text: string): string {
  const words = text.match(/[\p{L}\p{N}]+/gu) ?? []
  const name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
  return name.replaceAll(/[^A-Za-z0-9]/g, '') || 'Root'
}

/**
 * The name of a definition: its title, or the literal segments of its path. It does not begin with a digit, since
 * generators make identifiers of it.
 */
export function nameDefinition(title: string | undefined, pattern: string): string {
  return pascalCase(title ?? pattern.replaceAll(/\{\w+(?:\.\.\.)?\}/g, '')).replace(/^(?=\d)/, '_')
}

/** The name of a path: `/users/{id}` becomes `UsersById`. */
export function namePath(pattern: string): string {
  return pascalCase(
    pattern.replaceAll(/\{(\w+)(?:\.\.\.)?\}/g, (_, name: string) => `by-${name}`).replaceAll('by-', 'By '),
  )
}

/** A pattern as a path template, with escapes as in a request: OpenAPI has no name for a path of any depth. */
export function templateOf(pattern: string): string {
  return encodeURI(pattern).replaceAll(/%7B(\w+)(?:\.\.\.)?%7D/g, '{$1}')
}

/** A function that makes names unique: the second of a name gets a number. */
export function createNamer(): (name: string) => string {
  const taken = new Set<string>()
  return (name) => {
    let unique = name
    for (let i = 2; taken.has(unique); i++) unique = `${name}${i}`
    taken.add(unique)
    return unique
  }
}
