/** What is used of json-merge-patch 1.0, which comes without types; the whole in tests only. */
declare module 'json-merge-patch' {
  export function generate(before: unknown, after: unknown): unknown
  export function apply(document: unknown, patch: unknown): unknown
}
declare module 'json-merge-patch/lib/generate.js' {
  const generate: (before: unknown, after: unknown) => unknown
  export = generate
}
