/** The conformance kits for stores and for content stores: every sentence of their contracts as a test. */
import { testStore } from './stores/conformance/test-store.ts'
import type { TestStoreOptions } from './stores/conformance/types.ts'

export { type ContentsFixture, type TestContentsOptions, testContents } from './stores/conformance/test-contents.ts'
export type {
  Capability,
  StoreCapabilities,
  StoreFixture,
  TestRunner,
  TestStoreOptions,
} from './stores/conformance/types.ts'
export { testStore }

/** @deprecated The name of {@link testStore} in 0.1.0. */
export const describeStore: typeof testStore = testStore
/** @deprecated The name of {@link TestStoreOptions} in 0.1.0. */
export type DescribeStoreOptions = TestStoreOptions
