import { compileErrors, parse as readmeParse, validate as readmeValidate } from '@readme/openapi-parser'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import spectral from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import { describe, expect, it } from 'vitest'
// @ts-expect-error a plain script, as its readers have it
import { createDemo } from '../../examples/demo/service.js'
import type { JsonObject } from '../../src/core/json.ts'
import { type OpenApiOptions, openapi } from '../../src/openapi.ts'
import type { ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { demoSettings } from '../support/demo.ts'
import { describeKinds } from './kinds.ts'

const INFO: OpenApiOptions['info'] = {
  title: 'Demo',
  version: '1.0.0',
  description: 'A demo.',
  contact: { name: 'The authors' },
  license: { name: 'MIT', identifier: 'MIT' },
}

function describeDemo(options: Partial<OpenApiOptions> = {}): JsonObject {
  const service: ResourceService = createDemo(memoryStore(), demoSettings)
  return openapi(service, { info: INFO, ...options })
}

/** Some checkers change what they are given, or keep it. */
const copy = (document: JsonObject): JsonObject => JSON.parse(JSON.stringify(document))

async function lintByRedocly(document: JsonObject): Promise<readonly string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config })
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)
}

async function lintBySpectral(document: JsonObject): Promise<readonly string[]> {
  const linter = new spectral.Spectral()
  linter.setRuleset({ extends: [[rulesets.oas, 'recommended']] } as Parameters<typeof linter.setRuleset>[0])
  const results = await linter.run(copy(document) as never)
  return results.map(({ code, path, message }) => `${code} ${path.join('.')}: ${message}`)
}

async function validateBySeriousme(document: JsonObject): Promise<readonly unknown[]> {
  const result = await new Validator().validate(copy(document))
  return result.valid ? [] : [result.errors]
}

async function validateByReadme(document: JsonObject): Promise<readonly string[]> {
  await readmeParse(copy(document) as never)
  const result = await readmeValidate(copy(document) as never)
  const warnings = result.warnings.map(({ message }) => message)
  return result.valid ? warnings : [compileErrors(result), ...warnings]
}

const documents: Readonly<Record<string, () => JsonObject>> = {
  'the demo': () => describeDemo(),
  'a service with every kind of resource': () => describeKinds({ info: INFO }),
}

describe('the description of a service', () => {
  it.each(Object.entries(documents))(
    'has no finding of redocly, recommended-strict: %s (issue 21, figures)',
    async (_, make) => {
      expect(await lintByRedocly(make())).toEqual([])
    },
  )

  it.each(Object.entries(documents))('has no finding of spectral:oas: %s (issue 21, figures)', async (_, make) => {
    expect(await lintBySpectral(make())).toEqual([])
  })

  it.each(Object.entries(documents))(
    'is valid by @seriousme/openapi-schema-validator: %s (issue 21, figures)',
    async (_, make) => {
      expect(await validateBySeriousme(make())).toEqual([])
    },
  )

  it.each(Object.entries(documents))('is valid by @readme/openapi-parser: %s (issue 21, figures)', async (_, make) => {
    expect(await validateByReadme(make())).toEqual([])
  })

  it('is read by checkers that find what is wrong', async () => {
    const { paths, ...rest } = describeDemo()
    const broken = { ...rest, paths: { ...(paths as JsonObject), '/broken': { get: { responses: 5 } } } }
    for (const check of [lintByRedocly, lintBySpectral, validateBySeriousme, validateByReadme]) {
      expect((await check(broken)).length).toBeGreaterThan(0)
    }
  })

  it('is OpenAPI 3.2 where that is asked for', async () => {
    const document = describeDemo({ version: '3.2' })
    expect(document['openapi']).toBe('3.2.0')
    expect(await lintByRedocly(document)).toEqual([])
    expect(await validateBySeriousme(document)).toEqual([])
  })
})
