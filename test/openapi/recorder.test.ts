import { describe, expect, it } from 'vitest'
import { findView } from '../../src/openapi/inputs.ts'
import { checkAnswers, type RecordedAnswer } from '../support/check-answers.ts'
import { findUnseen } from '../support/compare-answers.ts'
import { createKinds } from './kinds.ts'

const view = findView(createKinds())!
const routeOf = (wanted: string): object => view.routes.find(({ pattern }) => pattern === wanted)!.route

function judge(answer: Partial<RecordedAnswer>): readonly string[] {
  const good: RecordedAnswer = {
    ...{ view, route: routeOf('/users/{id}'), path: '/users/1', method: 'GET', accept: undefined, status: 200 },
    ...{ names: ['Content-Type', 'ETag'], contentType: 'application/json', length: '20' },
    text: '{"id":1,"name":"Ada"}',
  }
  return checkAnswers([{ ...good, ...answer }]).faults
}

describe('the recorder of answers (issue 21: truth is two-sided)', () => {
  it('finds nothing in an answer as it is described', () => {
    expect(judge({})).toEqual([])
    expect(judge({ method: 'HEAD', text: undefined })).toEqual([])
  })

  it.each<[string, Partial<RecordedAnswer>]>([
    ['a status', { status: 203 }],
    ['an error that the method cannot give', { status: 428, contentType: 'application/problem+json', text: undefined }],
    ['a header', { names: ['Content-Type', 'Retry-After'] }],
    ['a media type', { contentType: 'text/html', text: undefined }],
    ['content', { status: 304 }],
    ['content that breaks the schema', { text: '{"id":"1","name":"Ada"}' }],
    ['content without its id', { text: '{"name":"Ada"}' }],
    [
      'a problem of another type',
      {
        status: 404,
        names: [],
        contentType: 'application/problem+json',
        text: '{"type":"urn:problem-type:http-resource-service:gone","title":"Gone","status":404}',
      },
    ],
    ['a method', { method: 'POST' }],
    ['a header that is missing', { route: routeOf('/settings'), path: '/settings', text: '{"theme":"dark"}' }],
    ['text that the client did not ask for', { status: 404, names: [], contentType: 'text/plain', text: undefined }],
  ])('finds %s that is not described', (_, answer) => {
    expect(judge(answer)).toHaveLength(answer.route === undefined ? 1 : 2)
  })

  it('finds what is described in one file and answered in none', () => {
    const records = [
      { described: ['item GET 200', 'item GET 304'], seen: ['item GET 200'] },
      { described: ['item GET 304', 'item PUT 204'], seen: ['item PUT 204', 'item PUT 405'] },
    ]
    expect(findUnseen(records)).toEqual(['item GET 304'])
  })
})
