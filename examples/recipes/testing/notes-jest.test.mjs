// examples/recipes/testing/notes-jest.test.mjs
import { expect, test } from '@jest/globals'
import { memoryStore } from 'http-resource-service'
import request from 'supertest'
import { createApp } from './app.mjs'

test('answers 410 for what was deleted', async () => {
  const app = createApp(memoryStore())
  await request(app).post('/notes').send({ title: 'First' }).expect(201)
  await request(app).delete('/notes/1').expect(204)
  const { body } = await request(app).get('/notes/1').expect(410)
  expect(body.title).toBe('Gone')
})
