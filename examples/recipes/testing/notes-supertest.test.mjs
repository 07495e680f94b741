// examples/recipes/testing/notes-supertest.test.mjs
import { test } from 'node:test'
import { memoryStore } from 'http-resource-service'
import request from 'supertest'
import { createApp } from './app.mjs'

test('creates a note and answers 304 for its tag', async () => {
  const app = createApp(memoryStore()) // supertest starts a server for each request
  const { headers } = await request(app).post('/notes').send({ title: 'First' }).expect(201)
  const { headers: fields } = await request(app).get(headers.location).expect(200, { id: 1, title: 'First' })
  await request(app).get(headers.location).set('If-None-Match', fields.etag).expect(304)
})
