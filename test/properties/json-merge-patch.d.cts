/** What is used of json-merge-patch 1.0, which comes without types. */
declare module 'json-merge-patch' {
  export function apply(document: unknown, patch: unknown): unknown
}
