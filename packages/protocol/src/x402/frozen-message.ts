const frozen = new WeakSet<object>();

/**
 * Deep-freezes a message, and returns it. Facts about such a message stay true and can be cached,
 * above all its shape, which every layer checks.
 */
export function freezeMessage<T>(message: T): T {
  freezeAll(message);
  if (typeof message === "object" && message !== null) frozen.add(message);
  return message;
}

/** Returns whether a value is a message that `freezeMessage` has frozen. */
export function isFrozenMessage(value: unknown): value is object {
  return typeof value === "object" && value !== null && frozen.has(value);
}

/**
 * Memoizes a function of two frozen messages. For each first message it keeps the last second
 * message and its result. One payment is checked against one offer several times on its way through
 * a shop.
 */
export function onceForFrozen<First, Second, Result>(
  compute: (first: First, second: Second) => Result,
): (first: First, second: Second) => Result {
  const last = new WeakMap<object, { second: object; result: Result }>();
  return (first, second) => {
    if (!isFrozenMessage(first) || !isFrozenMessage(second)) return compute(first, second);
    const known = last.get(first);
    if (known?.second === second) return known.result;
    const result = compute(first, second);
    last.set(first, { second, result });
    return result;
  };
}

/**
 * A frozen object may hold unfrozen ones. So the message, a tree like all JSON, is walked to its
 * leaves.
 */
function freezeAll(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const key of Object.keys(value)) freezeAll(Reflect.get(value, key));
}
