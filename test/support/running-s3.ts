import { afterAll, afterEach } from 'vitest'
import { type S3Service, startS3 } from './s3-service.ts'

/** A service for the tests of one file. What a test changes of it ends with the test. */
export async function runS3(): Promise<S3Service> {
  const service = await startS3()
  afterAll(() => service.close())
  afterEach(() => {
    service.interfere = () => undefined
    service.clockOffset = 0
    service.pageSize = 1000
  })
  return service
}
