/** The conformance kit for stores: every sentence of the store contract as a test. */
import { testStore } from './stores/conformance/test-store.ts'
import type { TestStoreOptions } from './stores/conformance/types.ts'

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
