// Compiled, never run: `tsc -p test` fails when a public type changes.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import express from 'express'
import Koa from 'koa'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import type { HttpErrorCode } from '../../src/core/errors.ts'
import type { Handler } from '../../src/core/handler.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { conditional, type KnownState } from '../../src/handlers/conditional.ts'
import type { methodOverride } from '../../src/handlers/method-override.ts'
import { type Origins, preflight } from '../../src/handlers/preflight.ts'
import { openFile, type RangeSource, range } from '../../src/handlers/range.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import type { Equal, Expect } from './equal.ts'

export type Results = [
  Expect<Equal<ReturnType<typeof conditional>, Handler>>,
  Expect<Equal<ReturnType<typeof range>, Handler>>,
  Expect<Equal<ReturnType<typeof preflight>, Handler>>,
  Expect<Equal<ReturnType<typeof methodOverride>, Handler>>,
  Expect<Equal<ReturnType<typeof requireHttps>, Handler>>,
  Expect<Equal<Awaited<ReturnType<typeof openFile>>, RangeSource | undefined>>,
  Expect<Equal<KnownState['entityTag'], string | undefined>>,
  Expect<Equal<RequestView['params'], Readonly<Record<string, string>>>>,
  Expect<Equal<Extract<HttpErrorCode, 'ERR_NOT_FOUND'>, 'ERR_NOT_FOUND'>>,
  Expect<Equal<Parameters<Extract<Origins, (...args: never) => unknown>>, [origin: string]>>,
]

// A piece is a listener, Express middleware and, adapted, Koa middleware.
const piece = range(({ params }) => openFile(`films/${params['id']}`, { contentType: 'video/mp4', entityTag: '"1"' }))
createServer(piece)
express().get('/films/:id', piece)
new Koa().use(koaMiddleware(piece))
declare const [req, res]: [IncomingMessage, ServerResponse]
piece(req, res)
piece(req, res, (error) => error)

// A state may be known at once, later, or not at all.
conditional(() => undefined)
conditional(async () => ({ lastModified: new Date() }))
conditional(({ headers }) => ({ entityTag: headers.etag }), { preconditions: 'required' })
range(() => ({ contentType: 'text/plain', content: new Uint8Array(3) }))

// @ts-expect-error a tag is text
conditional(() => ({ entityTag: 7 }))
// @ts-expect-error an option that does not exist
conditional(() => undefined, { requird: true })
// @ts-expect-error content without a type
range(() => ({ content: 'abc' }))
// @ts-expect-error a reader that does not say its size
range(() => ({ contentType: 'text/plain', content: { async *open() {} } }))
// @ts-expect-error no origins
preflight({})
// @ts-expect-error TRACE is not a method of a resource
preflight({ origins: '*', methods: ['TRACE'] })
// @ts-expect-error only 403 and 426
requireHttps({ status: 401 })
// @ts-expect-error what a request view has cannot be changed
conditional((request) => void (request.method = 'GET'))
