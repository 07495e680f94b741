/** What `generate-merge-patch.ts` uses of json-merge-patch 1.0, which comes without types. */
declare module 'json-merge-patch' {
  export function generate(before: unknown, after: unknown): unknown
}
