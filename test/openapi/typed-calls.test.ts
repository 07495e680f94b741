import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
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
    copyFileSync('test/consumer/openapi-calls.ts', `${FOLDER}/calls.ts`)
    expect(compile(['demo', 'kinds', 'calls'].map((name) => `${FOLDER}/${name}.ts`))).toEqual([])
  })
})
