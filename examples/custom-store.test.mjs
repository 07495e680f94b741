// examples/custom-store.test.mjs
import { after, before, describe, it } from 'node:test'
import { testStore } from 'http-resource-service/testing'
import pg from 'pg'
import { preparation, userStore } from './custom-store.js' // the store that is tested

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
before(() => pool.query(preparation))
after(() => pool.end())

async function create() {
  await pool.query('TRUNCATE users RESTART IDENTITY')
  return { store: userStore(pool), reopen: () => userStore(pool) }
}

testStore('userStore', create, {
  describe,
  it,
  collection: '/users',
  content: (seed, name) => ({
    contentType: 'application/json',
    body: JSON.stringify({ id: Number(name), name: `User ${seed}`, email: `${seed}@example.org` }),
  }),
  // What a table of rows cannot do:
  contents: false,
  paths: false,
  dates: false,
  tombstones: false,
  hiding: false,
  related: false,
})
