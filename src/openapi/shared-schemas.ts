import type { JsonObject } from '../core/json.ts'
import { objectOf } from './json-schema.ts'

export type SharedSchema = 'Problem' | 'JsonPatch' | 'Removal' | 'Operation' | 'Entry'

export const TEXT: JsonObject = { type: 'string' }
export const DATE: JsonObject = { type: 'string', description: 'An HTTP-date.' }
const POINTER = {
  type: 'string',
  description: 'A JSON Pointer (RFC 6901).',
  pattern: '^(?:/(?:[^~/]|~0|~1)*)*$',
  examples: ['/name'], // Swagger UI would make kilobytes of text of the pattern
}

/** Schemas that are the same in every description. */
export const SHARED: Readonly<Record<SharedSchema, JsonObject>> = {
  /** RFC 9457 §3, with the members that this service adds. */
  Problem: {
    description: 'Problem details (RFC 9457).',
    ...objectOf(
      {
        type: { type: 'string', format: 'uri' },
        title: TEXT,
        status: { type: 'integer', minimum: 400, maximum: 599 },
        detail: TEXT,
        errors: {
          type: 'array',
          description: 'Faults in the content of the request, or in its query.',
          items: { oneOf: [objectOf({ pointer: POINTER, detail: TEXT }), objectOf({ parameter: TEXT, detail: TEXT })] },
        },
      },
      ['type', 'title', 'status'],
    ),
  },
  /** RFC 6902 §4: one object for each operation. */
  JsonPatch: {
    description: 'A JSON Patch (RFC 6902).',
    type: 'array',
    items: {
      oneOf: [
        objectOf({ op: { enum: ['add', 'replace', 'test'] }, path: POINTER, value: {} }),
        objectOf({ op: { const: 'remove' }, path: POINTER }),
        objectOf({ op: { enum: ['copy', 'move'] }, from: POINTER, path: POINTER }),
      ],
    },
  },
  /** The answer that confirms a removal. */
  Removal: {
    description: 'The confirmation of a removal.',
    ...objectOf({ deleted: { const: true }, id: { type: ['integer', 'string'] } }),
  },
  /** The monitor of accepted work. */
  Operation: {
    description: 'Accepted work, and how far it is.',
    ...objectOf(
      {
        id: TEXT,
        kind: { const: 'removal' },
        target: { type: 'string', description: 'The path of the resource.' },
        state: { enum: ['pending', 'done', 'failed'] },
        accepted: { type: 'string', format: 'date-time' },
        ended: { type: 'string', format: 'date-time' },
        result: {},
        problem: {},
        principal: objectOf({ scheme: TEXT, id: TEXT }),
      },
      ['id', 'kind', 'target', 'state', 'accepted'],
    ),
  },
  /** A member of a listing that is not JSON: where it is, and what it is. */
  Entry: {
    description: 'Where a resource is, and what it is.',
    ...objectOf({
      id: { type: ['integer', 'string'] },
      href: TEXT,
      type: { type: 'string', description: 'The media type.' },
      size: { type: 'integer', minimum: 0, description: 'Bytes.' },
    }),
  },
}
