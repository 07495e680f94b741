/** A name for identifiers: `/config/app` becomes `ConfigApp`, `User account` becomes `UserAccount`. */
function pascalCase(text: string): string {
  const words = text.match(/[\p{L}\p{N}]+/gu) ?? []
  const name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
  return name.replaceAll(/[^A-Za-z0-9]/g, '') || 'Root'
}

/** The name of a definition: its title, or the literal segments of its path. */
export function nameDefinition(title: string | undefined, pattern: string): string {
  return pascalCase(title ?? pattern.replaceAll(/\{\w+(?:\.\.\.)?\}/g, ''))
}

/** The name of a path: `/users/{id}` becomes `UsersById`. */
export function namePath(pattern: string): string {
  return pascalCase(
    pattern.replaceAll(/\{(\w+)(?:\.\.\.)?\}/g, (_, name: string) => `by-${name}`).replaceAll('by-', 'By '),
  )
}

/** A pattern as a path template: OpenAPI has no name for a path of any depth. */
export function templateOf(pattern: string): string {
  return pattern.replace('...}', '}')
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
