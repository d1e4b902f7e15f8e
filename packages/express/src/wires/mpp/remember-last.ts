/** Makes a value for a key, and remembers the last one: most answers ask for the same again. */
export function rememberLast<Key extends string | number, Value>(
  make: (key: Key) => Value,
): (key: Key) => Value {
  let last: { key: Key; value: Value } | undefined;
  return (key) => {
    if (last?.key !== key) last = { key, value: make(key) };
    return last.value;
  };
}
