/** How a member of an object is read, and what becomes of what is written to it. */
export interface Accessor {
  get(): unknown;
  set?(value: unknown): void;
}

/**
 * Puts methods, and accessors of other members, in front of those of one object.
 *
 * @returns puts back what was there, dropping whatever was put in front meanwhile.
 */
export function shadowMethods(
  target: object,
  methods: Record<string, unknown>,
  accessors: Record<string, Accessor> = {},
): () => void {
  const covered = [...Object.keys(methods), ...Object.keys(accessors)].map(
    (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
  );
  loosen(target);
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true });
  }
  for (const [name, accessor] of Object.entries(accessors)) {
    Object.defineProperty(target, name, { ...accessor, configurable: true });
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
function loosen(target: object): void {
  const [first] = Object.keys(target);
  if (first === undefined) return;
  const descriptor = Object.getOwnPropertyDescriptor(target, first);
  if (descriptor?.configurable !== true) return;
  Reflect.deleteProperty(target, first);
  Object.defineProperty(target, first, descriptor);
}
