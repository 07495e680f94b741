// What somebody writes who has nothing but the OpenAPI document of the demo: compiled, never run.
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
