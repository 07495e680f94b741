import { readFileSync } from 'node:fs'

/** What a Dockerfile says, as far as those of the examples use it. */
export interface Dockerfile {
  readonly image: string
  readonly env: Readonly<Record<string, string>>
  /** Files that are copied into the image, as they are named beside the Dockerfile. */
  readonly copied: readonly string[]
  readonly run: readonly string[]
  readonly user: string
  readonly healthCheck: readonly string[]
  readonly command: readonly string[]
}

/** Reads a Dockerfile. @throws Error for an instruction that is not known here */
export function readDockerfile(path: string): Dockerfile {
  const found: Record<string, string[]> = {}
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, instruction, rest] = /^([A-Z]+) (.+)$/.exec(line)!
    if (!KNOWN.includes(instruction!)) throw new Error(`${path}: "${line}" is not known.`)
    ;(found[instruction!] ??= []).push(rest!)
  }
  const last = (name: string): string => found[name]?.at(-1) ?? ''
  return {
    image: last('FROM'),
    env: Object.fromEntries((found['ENV'] ?? []).map((pair) => pair.split('=') as [string, string])),
    copied: (found['COPY'] ?? []).flatMap((words) => words.split(' ').slice(0, -1)),
    run: found['RUN'] ?? [],
    user: last('USER'),
    healthCheck: JSON.parse(/CMD (\[.*\])$/.exec(last('HEALTHCHECK'))![1]!) as string[],
    command: JSON.parse(last('CMD')) as string[],
  }
}

const KNOWN = ['FROM', 'ENV', 'WORKDIR', 'COPY', 'RUN', 'USER', 'EXPOSE', 'HEALTHCHECK', 'STOPSIGNAL', 'CMD']
