/**
 * Shadows methods of one object.
 *
 * @returns restores the former methods, dropping any that were put in front meanwhile.
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
 * Deletes a property and puts it back, which switches the object to dictionary mode. Otherwise, V8
 * allocates a hidden class for each property that joins an object whose prototype was replaced, as
 * Express does. These cost 13 kB for a response, and outlive it.
 */
function forceDictionaryMode(target: object): void {
  const [first] = Object.keys(target);
  if (first === undefined) return;
  const descriptor = Object.getOwnPropertyDescriptor(target, first);
  if (descriptor?.configurable !== true) return;
  Reflect.deleteProperty(target, first);
  Object.defineProperty(target, first, descriptor);
}

/** Assigns, which costs a third of a definition, unless an existing member prevents it. */
function put(target: object, name: string, value: unknown): void {
  const isCovered = Object.hasOwn(target, name);
  if (!isCovered && Reflect.set(target, name, value) && Object.hasOwn(target, name)) return;
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
