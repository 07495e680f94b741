/** The conformance kit for stores: every sentence of the store contract as a test. */
export { describeStore } from './stores/conformance/describe-store.ts'
export type {
  Capability,
  DescribeStoreOptions,
  StoreCapabilities,
  StoreFixture,
  TestRunner,
} from './stores/conformance/types.ts'
