// The conformance kits for stores and for content stores: every sentence of their contracts as a test.
import { testStore } from './conformance/test-store.ts'
import type { TestStoreOptions } from './conformance/types.ts'

export type { TestRunner } from './conformance/runner.ts'
export { type ContentsFixture, type TestContentsOptions, testContents } from './conformance/test-contents.ts'
export type { Capability, StoreCapabilities, StoreFixture, TestStoreOptions } from './conformance/types.ts'
export { testStore }

/** @deprecated The name of {@link testStore} in 0.1.0. */
export const describeStore: typeof testStore = testStore
/** @deprecated The name of {@link TestStoreOptions} in 0.1.0. */
export type DescribeStoreOptions = TestStoreOptions
