import { randomBytes } from 'node:crypto'
import { type S3ContentsOptions, s3Contents } from '../../src/contents/s3.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { BUCKET } from './s3-service.ts'
import { CREDENTIALS, REGION } from './s3-signatures.ts'

let prefixes = 0
/** A place of its own in the bucket. */
export const createPrefix = (): string => `kit-${++prefixes}/`
export const createKey = (): string => randomBytes(24).toString('hex')

/** Opens the bucket of a test service. */
export function openS3Contents(endpoint: string, options: Partial<S3ContentsOptions> = {}): ContentStore {
  return s3Contents({ endpoint, region: REGION, bucket: BUCKET, credentials: CREDENTIALS, ...options })
}

export async function listKeys(contents: ContentStore): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of contents.list()) keys.push(key)
  return keys
}
