// examples/contents.test.mjs
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileContents } from 'http-resource-service/contents/file' // the content store that is tested
import { testContents } from 'http-resource-service/testing'

async function create() {
  const directory = await mkdtemp(join(tmpdir(), 'contents-'))
  return { contents: fileContents({ directory }), close: () => rm(directory, { recursive: true }) }
}

testContents('fileContents', create, { describe, it, largest: 2_000_000 })
