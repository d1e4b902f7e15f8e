const frozen = new WeakSet<object>();

/**
 * Makes a message unchangeable, all through, and returns it. What is known of such a message stays
 * true, so that it need not be found out again: its shape, above all, which is asked for at every
 * door that it passes.
 */
export function freezeMessage<T>(message: T): T {
  freezeAll(message);
  if (typeof message === "object" && message !== null) frozen.add(message);
  return message;
}

/** Whether a value is a message that `freezeMessage` has made unchangeable. */
export function isFrozenMessage(value: unknown): value is object {
  return typeof value === "object" && value !== null && frozen.has(value);
}

/**
 * A function of two messages that remembers, for a first one that cannot change, what it last made of
 * it and of a second one that cannot change either: on its way through a shop one payment is held
 * against one offer, several times over.
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

/** What is frozen already may hold what is not, so a message is walked to its leaves: it is a tree, like all JSON. */
function freezeAll(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const key of Object.keys(value)) freezeAll(Reflect.get(value, key));
}
