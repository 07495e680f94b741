// Standalone middleware in an Express application that has routes of its own.
import express from 'express'
import { auth, basic, principalOf } from 'http-resource-service/auth'
import { bodyParse } from 'http-resource-service/body-parse'
import { conditional } from 'http-resource-service/conditional'
import { methodOverride } from 'http-resource-service/method-override'
import { patch } from 'http-resource-service/patch'
import { preflight } from 'http-resource-service/preflight'
import { range } from 'http-resource-service/range'
import { requireHttps } from 'http-resource-service/require-https'

let settings = { version: 1, document: { theme: 'light', size: 12 } }
const film = Buffer.alloc(100_000, 'film ')
const accounts = { ada: 'lovelace' }

const app = express()
app.disable('x-powered-by')
app.use(requireHttps(), methodOverride())
app.use(preflight({ origins: ['https://app.example'] }))

// The route says which state it is; 304, 412 and 428 come from the middleware. It comes after the parser of the content:
// while content arrives, another request may change the state.
const currentSettings = conditional(() => ({ entityTag: `"${settings.version}"` }), { preconditions: 'required' })
app.get('/settings', currentSettings, (_req, res) => res.json(settings.document))
app.put('/settings', bodyParse({ accept: ['json'] }), currentSettings, (req, res) => {
  // A request without content and without Content-Type has no body.
  if (req.body === undefined) return res.status(400).json({ title: 'JSON is expected.' })
  settings = { version: settings.version + 1, document: req.body }
  res.set('ETag', `"${settings.version}"`).status(204).end()
})

// JSON Patch and merge patch, compared and swapped.
app.patch(
  '/settings',
  patch({
    read: () => ({ document: settings.document, entityTag: `"${settings.version}"`, version: settings.version }),
    write({ current, document }) {
      if (current.version !== settings.version) return 'conflict'
      settings = { version: settings.version + 1, document }
      return { entityTag: `"${settings.version}"` }
    },
  }),
)

// Whole, in one range or in several.
app.get(
  '/film',
  range(() => ({ contentType: 'video/mp4', entityTag: '"film-1"', content: film })),
)

// Parts of an upload, one after the other, never all in memory.
app.post('/photos', bodyParse({ accept: ['multipart'] }), async (req, res) => {
  const sizes = {}
  for await (const part of req.body ?? []) {
    if (part.kind === 'field') continue
    sizes[part.name] = 0
    for await (const chunk of part.content) sizes[part.name] += chunk.length
  }
  res.status(201).json(sizes)
})

app.get('/me', auth({ schemes: [basic({ realm: 'me', accounts })] }), (req, res) => res.send(principalOf(req).id))

const server = app.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
