/** Types that a resource definition carries for a client. Nothing of it exists at run time. */

/** The options that decide which requests a client can make. */
export type TraitName =
  | ('methods' | 'memberMethods' | 'types' | 'create' | 'remove' | 'names' | 'files')
  | ('query' | 'count' | 'idempotency')

/** Those options, as they were written. Hooks are left out: their types stay with the server. */
export type Traits<Options> = { readonly [Name in keyof Options as Extract<Name, TraitName>]: Options[Name] }

/** The input type of a Standard Schema among the options. */
type InputOf<Options, Otherwise> = Options extends {
  readonly schema: { readonly '~standard': { readonly types?: { readonly input: infer Input } | undefined } }
}
  ? unknown extends Input
    ? Otherwise
    : Input
  : Otherwise

export interface DefinitionTypes<Output = unknown, Input = unknown, Named = unknown> {
  readonly output: Output
  readonly input: Input
  readonly traits: Named
}

/** Carries types; the property is never there. */
export interface Typed<Value, Options, Named> {
  readonly '~types'?: DefinitionTypes<Value, InputOf<Options, Value>, Named>
}
