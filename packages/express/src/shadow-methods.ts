/**
 * Puts methods in front of those of one object.
 *
 * @returns puts back what was there, dropping whatever was put in front meanwhile.
 */
export function shadowMethods(target: object, methods: Record<string, unknown>): () => void {
  const covered = Object.keys(methods).map(
    (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
  );
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true });
  }
  return () => {
    // The last one first: V8 keeps an object fast when its newest property goes, and slow for ever otherwise.
    for (const [name, descriptor] of covered.toReversed()) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, descriptor);
    }
  };
}
