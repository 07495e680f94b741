/**
 * Bytes, and then those of a source. The bytes wait for the first ones of the source: until those are there nothing has
 * been sent, so that a source that fails can still be answered with an error.
 */
export async function* precede(
  head: Uint8Array,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let isBegun = false
  for await (const piece of source) {
    if (!isBegun) yield head
    isBegun = true
    yield piece
  }
  if (!isBegun) yield head
}
