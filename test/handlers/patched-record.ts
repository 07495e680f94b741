import { createServer, type RequestListener } from 'node:http'
import { expect } from 'vitest'
import type { Handler } from '../../src/core/handler.ts'
import type { JsonValue } from '../../src/core/json.ts'
import { type PatchedTarget, type PatchOptions, type PatchTarget, patch } from '../../src/handlers/patch.ts'
import { listenForTest } from '../support/listen.ts'

export const JSON_PATCH = 'application/json-patch+json'
export const MERGE_PATCH = 'application/merge-patch+json'
const CHANGED = Date.UTC(2025, 0, 2, 3, 4, 5)

export interface VersionedTarget extends PatchTarget {
  readonly version: number
}

/** A document with versions, written by compare-and-swap: what a user of the middleware brings along. */
export function createRecord(document: JsonValue) {
  let current: VersionedTarget | undefined = { document, version: 1, entityTag: '"1"', lastModified: CHANGED }
  return {
    get current() {
      return current
    },
    writes: 0,
    remove() {
      current = undefined
    },
    read: async (): Promise<VersionedTarget | undefined> => current,
    async write({ current: read, document, text }: PatchedTarget<VersionedTarget>) {
      this.writes++
      expect(JSON.parse(text)).toEqual(document)
      await new Promise(setImmediate)
      if (current?.version !== read.version) return 'conflict' as const
      const version = read.version + 1
      current = { document, version, entityTag: `"${version}"`, lastModified: CHANGED + version * 1000 }
      return current
    },
  }
}

export type PatchedRecord = ReturnType<typeof createRecord>

export function pieceFor(record: PatchedRecord, options: Partial<PatchOptions<VersionedTarget>> = {}): Handler {
  return patch<VersionedTarget>({ read: record.read, write: (patched) => record.write(patched), ...options })
}

/** Of the server that runs now. */
export let origin: string

/** Starts a server that ends with the test. */
export async function start(listener: RequestListener): Promise<void> {
  origin = `http://127.0.0.1:${await listenForTest(createServer(listener))}`
}

export async function send(
  body: JsonValue | string,
  headers: Record<string, string> = {},
  { path = '/doc', method = 'PATCH' } = {},
): Promise<{ status: number; headers: Headers; text: string; json: () => JsonValue }> {
  const content = typeof body === 'string' ? body : JSON.stringify(body)
  const type = Array.isArray(body) ? JSON_PATCH : MERGE_PATCH
  const response = await fetch(origin + path, { method, headers: { 'Content-Type': type, ...headers }, body: content })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) }
}
