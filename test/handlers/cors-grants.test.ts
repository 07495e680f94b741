import { describe, expect, it } from 'vitest'
import { BASE_FIELDS, type Exchange } from '../../src/core/exchange.ts'
import { createCors } from '../../src/handlers/cors.ts'

describe('createCors', () => {
  it('keeps the fields for an origin, and those of 1000 origins at most', async () => {
    const cors = createCors({ origins: () => true })
    const fieldsFor = async (origin: string): Promise<readonly string[]> => {
      const field = (name: string): string | undefined => (name === 'origin' ? origin : undefined)
      const exchange = { method: 'GET', pending: BASE_FIELDS, vary: '', field } as unknown as Exchange
      await cors.apply(exchange, [])
      return exchange.pending
    }
    const first = await fieldsFor('https://first.example')
    for (let i = 0; i < 999; i++) await fieldsFor(`https://${i}.example`)
    expect(await fieldsFor('https://first.example')).toBe(first)
    await fieldsFor('https://last.example')
    const again = await fieldsFor('https://first.example')
    expect(again).not.toBe(first)
    expect(again).toEqual(first)
  })

  it('adds its fields to those that are pending, in the place of those of the same names', async () => {
    const cors = createCors({ origins: 'https://a.test', exposedHeaders: ['ETag'] })
    const field = (name: string): string | undefined => (name === 'origin' ? 'https://a.test' : undefined)
    const pending = [...BASE_FIELDS, 'Authentication-Info', 'x', 'Access-Control-Allow-Origin', 'https://b.test']
    const exchange = { method: 'GET', pending, vary: '', field } as unknown as Exchange
    await cors.apply(exchange, [])
    expect(exchange.pending).toEqual([
      ...[...BASE_FIELDS, 'Authentication-Info', 'x'],
      ...['Access-Control-Allow-Origin', 'https://a.test', 'Access-Control-Expose-Headers', 'ETag'],
    ])
  })
})
