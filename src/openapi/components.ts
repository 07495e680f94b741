import type { JsonObject, JsonValue } from '../core/json.ts'

const SECTIONS = ['schemas', 'responses', 'parameters', 'headers', 'securitySchemes'] as const
type Section = (typeof SECTIONS)[number]

const REFERENCE = /"#\/components\/(\w+)\/([\w.-]+)/g

/** What several parts of a description share. */
export interface Components {
  /** Adds a component, unless it is there. @returns the reference to it */
  add(section: Section, name: string, value: JsonObject): JsonObject
  /**
   * The components that are referred to, sorted by name; empty sections are left out.
   * @param root where references begin
   */
  toJson(root: JsonValue): JsonObject
}

export function createComponents(): Components {
  const sections = new Map<Section, Map<string, JsonObject>>()
  return {
    add(section, name, value) {
      const known = sections.get(section) ?? new Map<string, JsonObject>()
      sections.set(section, known)
      if (!known.has(name)) known.set(name, value)
      return { $ref: `#/components/${section}/${name}` }
    },
    toJson(root) {
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
        const known = sections.get(section)
        // Security schemes are referred to by their names alone.
        const kept = [...(known ?? [])].filter(
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
