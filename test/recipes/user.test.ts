import { describe, expect, it } from 'vitest'
import { type RunningRecipe, startRecipe } from '../support/recipes.ts'

type Headers = Readonly<Record<string, string>>

async function logIn({ base }: RunningRecipe, username: string, password: string): Promise<Headers> {
  const body = new URLSearchParams({ username, password })
  const response = await fetch(`${base}/login`, { method: 'POST', body })
  expect(response.status).toBe(204)
  return { Cookie: response.headers.get('set-cookie')!.split(';')[0]! }
}

const byCookie = async (_: unknown, name: string): Promise<Headers> => ({ Cookie: `session=${name}-session` })

describe.each<[string, (recipe: RunningRecipe, name: string, password: string) => Promise<Headers>, string, boolean]>([
  ['user-express.mjs', logIn, 'Session realm="app"', true],
  ['user-fastify.mjs', byCookie, 'Session realm="app"', true],
  ['user-koa.mjs', byCookie, 'Session realm="app"', true],
  ['user-hono.mjs', byCookie, 'Session realm="app"', true],
  ['user-nest.ts', async (_, name) => ({ 'X-Api-Key': `${name}-key` }), 'ApiKey realm="app"', false],
])('examples/recipes/%s', (file, findHeaders, challenge, isAmbient) => {
  it('takes the user that the host has found as the principal', async () => {
    const recipe = await startRecipe(file)
    const { send } = recipe
    const refused = await send('GET', '/api/notes')
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, challenge])

    const ada = await findHeaders(recipe, 'ada', 'lovelace')
    const note = { title: 'First' }
    const created = await send('POST', '/api/notes', { headers: ada, json: note })
    expect([created.status, created.headers.get('location')]).toEqual([201, '/api/notes/1'])

    const bob = await findHeaders(recipe, 'bob', 'builder')
    expect((await send('GET', '/api/notes/1', { headers: bob })).value).toEqual({ id: 1, title: 'First' })
    expect((await send('POST', '/api/notes', { headers: bob, json: note })).status).toBe(403)

    // Cookies travel with requests that other sites make; a key does not.
    const foreign = { ...ada, Origin: 'https://other.example', 'Sec-Fetch-Site': 'cross-site' }
    expect((await send('POST', '/api/notes', { headers: foreign, json: note })).status).toBe(isAmbient ? 403 : 201)
  })
})
