/**
 * A function that makes a value once for each object: what is not `undefined` is kept as long as the object.
 * @param make makes it when it is first asked for
 */
export function onceFor<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, Value>()
  return (key) => {
    let value = made.get(key)
    if (value === undefined) made.set(key, (value = make(key)))
    return value
  }
}
