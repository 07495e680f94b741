import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { digestFields } from '../../src/handlers/digest-fields.ts'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { patch } from '../../src/handlers/patch.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { digestOf } from '../support/digests.ts'

/** A middleware that refuses, with a request that it has to refuse and one that it lets go on. */
export interface Guard {
  readonly name: string
  /** @param path the path of the secret as the middleware sees it: below the mount */
  create(path: string): Handler
  readonly method: string
  /** Field lines of the request that has to be refused. */
  readonly refused: readonly string[]
  /** Field lines of the same request when it may pass; `undefined` where the middleware answers that too. */
  readonly passing: readonly string[] | undefined
  readonly body?: string
  /** Whether a function of the test decides by the path: it tells letter case apart, and knows the secret only. */
  readonly isByPath?: boolean
}

const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
const ada = `Authorization: Basic ${btoa('ada:lovelace')}`

export const guards: readonly Guard[] = [
  {
    name: 'auth',
    create: () => auth({ schemes }),
    method: 'GET',
    refused: [],
    passing: [ada],
  },
  {
    name: 'auth, by a function of the path',
    create: (secret) => auth({ schemes, requireAuth: ({ path }) => path.startsWith(secret) }),
    method: 'GET',
    refused: [],
    passing: [ada],
    isByPath: true,
  },
  {
    name: 'auth with authorize',
    create: (secret) => auth({ schemes, authorize: (who, { path }) => who?.id === 'eve' || !path.startsWith(secret) }),
    method: 'DELETE',
    refused: [ada],
    passing: undefined,
    isByPath: true,
  },
  {
    name: 'requireHttps',
    create: () => requireHttps(),
    method: 'GET',
    refused: ['X-Forwarded-For: 192.0.2.1'],
    passing: [],
  },
  {
    name: 'preflight with rejectOrigin',
    create: () => preflight({ origins: ['https://app.example'], rejectOrigin: true }),
    method: 'POST',
    refused: ['Origin: https://evil.example'],
    passing: ['Origin: https://app.example'],
  },
  {
    name: 'methodOverride',
    create: () => methodOverride(),
    method: 'POST',
    refused: ['X-HTTP-Method-Override: GET'],
    passing: [],
  },
  {
    name: 'conditional with required',
    create: (secret) =>
      conditional(({ path }) => (path.startsWith(secret) ? { entityTag: '"1"' } : undefined), {
        preconditions: 'required',
      }),
    method: 'PUT',
    refused: [],
    passing: ['If-Match: "1"'],
    isByPath: true,
  },
  {
    name: 'patch with required',
    create: () =>
      patch({ read: () => ({ document: {}, entityTag: '"1"' }), write: () => undefined, preconditions: 'required' }),
    method: 'PATCH',
    refused: ['Content-Type: application/merge-patch+json'],
    passing: undefined,
    body: '{"a":1}',
  },
  {
    name: 'digestFields with required',
    create: () => digestFields({ required: true }),
    method: 'POST',
    refused: ['Content-Type: application/json', `Content-Digest: md5=:AAAA:`],
    passing: ['Content-Type: application/json', `Content-Digest: ${digestOf('{"a":1}')}`],
    body: '{"a":1}',
  },
  {
    name: 'bodyParse',
    create: () => bodyParse({ accept: ['json'] }),
    method: 'POST',
    refused: ['Content-Type: text/xml'],
    passing: ['Content-Type: application/json'],
    body: '{"a":1}',
  },
]
