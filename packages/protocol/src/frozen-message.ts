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

function freezeAll(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const key of Object.keys(value)) freezeAll(Reflect.get(value, key));
}
