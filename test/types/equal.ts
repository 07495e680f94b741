/** `true` when two types are the same, not merely assignable to each other. */
export type Equal<A, B> =
  (<Value>() => Value extends A ? 1 : 2) extends <Value>() => Value extends B ? 1 : 2 ? true : false

/** A type that does not compile unless its argument is `true`. */
export type Expect<Outcome extends true> = Outcome
