/**
 * Puts methods in front of those of one object.
 *
 * @returns puts back what was there, dropping whatever was put in front meanwhile.
 */
export function overrideMethods(target: object, methods: Record<string, unknown>): () => void {
  const covered = Object.keys(methods).map(
    (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
  );
  forceDictionaryMode(target);
  for (const [name, value] of Object.entries(methods)) {
    put(target, name, value);
  }
  return () => {
    for (const [name, descriptor] of covered) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, descriptor);
    }
  };
}

/**
 * Takes a member out and puts it back. V8 describes an object by the order in which it got its
 * members, and writes that description anew for each one that joins an object whose prototype was
 * replaced, as Express does: 13 kB for a response, which outlive it. An object that has lost a member
 * is a table from then on, and takes others as they come.
 */
function forceDictionaryMode(target: object): void {
  const [first] = Object.keys(target);
  if (first === undefined) return;
  const descriptor = Object.getOwnPropertyDescriptor(target, first);
  if (descriptor?.configurable !== true) return;
  Reflect.deleteProperty(target, first);
  Object.defineProperty(target, first, descriptor);
}

/** By assignment, which costs a third of a definition, unless something stands in its way. */
function put(target: object, name: string, value: unknown): void {
  const isCovered = Object.hasOwn(target, name);
  if (!isCovered && Reflect.set(target, name, value) && Object.hasOwn(target, name)) return;
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
