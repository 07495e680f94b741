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

/**
 * The Standard Schema interface, version 1 (standardschema.dev), as far as it is used: zod, valibot, arktype and others
 * provide it. A type only; nothing is loaded.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}
