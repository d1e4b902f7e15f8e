/**
 * Shadows methods of one object.
 *
 * @returns restores the former methods, dropping any that were put in front meanwhile.
 */
export function overrideMethods(target: object, methods: Record<string, unknown>): () => void {
  const names = Object.keys(methods);
  const covered = names.map((name) => Object.getOwnPropertyDescriptor(target, name));
  forceDictionaryMode(target);
  for (const name of names) put(target, name, methods[name]);
  return () => {
    for (const [index, descriptor] of covered.entries()) {
      const name = names[index] ?? "";
      if (descriptor === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, descriptor);
    }
  };
}

/** Named, since to list the properties of a response costs more than the rest. */
const ofEachResponse = "req";

/**
 * Deletes a property and puts it back, which switches the object to dictionary mode. Otherwise, V8
 * allocates a hidden class for each property that joins an object whose prototype was replaced, as
 * Express does. These cost 13 kB for a response, and outlive it.
 */
function forceDictionaryMode(target: object): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, ofEachResponse);
  if (descriptor?.configurable !== true) return;
  Reflect.deleteProperty(target, ofEachResponse);
  Object.defineProperty(target, ofEachResponse, descriptor);
}

/** Assigns, which costs a third of a definition, unless an existing member prevents it. */
function put(target: object, name: string, value: unknown): void {
  const isCovered = Object.hasOwn(target, name);
  if (!isCovered && Reflect.set(target, name, value) && Object.hasOwn(target, name)) return;
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
