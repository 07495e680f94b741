/** The few elements that are read of the XML of a service. */

/** The content of every element of a name, as it stands. */
export function readElements(text: string, name: string): readonly string[] {
  return [...text.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, content]) => content!)
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text of the first element of a name; empty when there is none. */
export function readElement(text: string, name: string): string {
  const content = new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1] ?? ''
  return content.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (entity, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    return ENTITIES[name] ?? entity
  })
}
