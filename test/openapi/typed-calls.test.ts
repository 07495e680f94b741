import { mkdirSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
// @ts-expect-error a plain script, as its readers have it
import { createDemo } from '../../examples/demo/service.js'
import type { JsonObject } from '../../src/core/json.ts'
import { openapi } from '../../src/openapi.ts'
import type { ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { demoSettings } from '../support/demo.ts'
import { describeKinds } from './kinds.ts'

const FOLDER = resolve('.tmp/openapi-types')
const info = { title: 'Demo', version: '1.0.0' }

/** What somebody writes who has nothing but the document. */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './demo.ts'

const client = createClient<paths>({ baseUrl: 'http://localhost:8080' })
type User = components['schemas']['User']

export async function readUsers(): Promise<readonly User[]> {
  const { data, error, response } = await client.GET('/users', { params: { query: { limit: 10, after: 'abc' } } })
  // An answer of 412 has no content: that there is no error does not mean that there is data.
  if (data === undefined) throw new Error((error?.type ?? 'no content') + ' ' + response.status)
  return data
}

export async function changeUser(id: number): Promise<string> {
  const { data: user } = await client.GET('/users/{id}', { params: { path: { id } } })
  const name: string = user!.name
  const number: number = user!.id
  await client.POST('/users', { body: { name, email: 'ada@example.org' } })
  await client.PUT('/users/{id}', {
    params: { path: { id: number }, header: { 'If-Match': '"a"', Prefer: 'return=minimal' } },
    body: { name, email: 'ada@example.org', role: 'admin' },
  })
  await client.PATCH('/users/{id}', { params: { path: { id } }, body: { role: null } })
  await client.PATCH('/users/{id}', { params: { path: { id } }, body: [{ op: 'remove', path: '/role' }] })
  const { error } = await client.DELETE('/users/{id}', { params: { path: { id } } })
  return error?.title ?? 'removed'
}

export async function goWrong(id: number): Promise<void> {
  // @ts-expect-error a path that is not there
  await client.GET('/people')
  // @ts-expect-error the id is missing
  await client.GET('/users/{id}')
  // @ts-expect-error the id is a number
  await client.GET('/users/{id}', { params: { path: { id: 'ada' } } })
  // @ts-expect-error the limit is a number
  await client.GET('/users', { params: { query: { limit: 'ten' } } })
  // @ts-expect-error the home has GET alone
  await client.DELETE('/')
  // @ts-expect-error the email is missing
  await client.POST('/users', { body: { name: 'Ada' } })
  // @ts-expect-error a port is a number
  await client.PUT('/config/app', { body: { debug: true, port: '80', logLevel: 'info' } })
  // @ts-expect-error no such operation of JSON Patch
  await client.PATCH('/users/{id}', { params: { path: { id } }, body: [{ op: 'delete', path: '/role' }] })
  const { data } = await client.GET('/uploads/{id}', { params: { path: { id } } })
  // @ts-expect-error no such state
  if (data!.state === 'running') return
  const { error } = await client.GET('/config/app')
  // @ts-expect-error a title is text
  if (error!.title === 5) return
}
`

async function writeTypes(name: string, document: JsonObject): Promise<void> {
  mkdirSync(FOLDER, { recursive: true })
  const nodes = await openapiTS(JSON.stringify(document))
  writeFileSync(`${FOLDER}/${name}.ts`, astToString(nodes))
}

function compile(files: readonly string[]): readonly string[] {
  const program = ts.createProgram(files, {
    ...{ strict: true, noEmit: true, skipLibCheck: false, types: [] },
    ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ...{ target: ts.ScriptTarget.ES2022, lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'] },
    ...{ module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
    allowImportingTsExtensions: true,
  })
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const line = file?.getLineAndCharacterOfPosition(start ?? 0).line
    return `${file?.fileName}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}

describe('types from the description', () => {
  it('compile, and hold calls of openapi-fetch to the definitions (issue 21, figures)', async () => {
    const service: ResourceService = createDemo(memoryStore(), demoSettings)
    await writeTypes('demo', openapi(service, { info }))
    await writeTypes('kinds', describeKinds({ info }))
    writeFileSync(`${FOLDER}/calls.ts`, PROGRAM)
    expect(compile(['demo', 'kinds', 'calls'].map((name) => `${FOLDER}/${name}.ts`))).toEqual([])
  }, 60_000)
})
