/** The conformance kits for stores and for content stores: every sentence of their contracts as a test. */
export { describeStore } from './stores/conformance/describe-store.ts'
export { type ContentsFixture, type TestContentsOptions, testContents } from './stores/conformance/test-contents.ts'
export type {
  Capability,
  DescribeStoreOptions,
  StoreCapabilities,
  StoreFixture,
  TestRunner,
} from './stores/conformance/types.ts'
