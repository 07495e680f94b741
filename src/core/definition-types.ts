/** The types that a resource definition carries for a client. Nothing of it exists at run time. */
export interface DefinitionTypes<Output = unknown, Input = unknown, Named = unknown> {
  /** What is stored and read: what the schema gives. */
  readonly output: Output
  /** What is sent: what the schema takes. */
  readonly input: Input
  /** The options that decide which requests a client can make, as they were written; `undefined` where left out. */
  readonly traits: Named
}

/** Carries types; the property is never there. */
export interface Typed<Output, Input, Named> {
  readonly '~types'?: DefinitionTypes<Output, Input, Named>
}
