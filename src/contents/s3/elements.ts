/** The few elements that are read of the XML of a service. */

/** The content of every element of a name, as it stands. An element that does not end is passed over. */
export function readElements(text: string, name: string): readonly string[] {
  const end = `</${name}>`
  const pieces = text.split(`<${name}>`).slice(1)
  return pieces.filter((piece) => piece.includes(end)).map((piece) => piece.slice(0, piece.indexOf(end)))
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
