import { useEffect, useState } from "preact/hooks";

/** A value that parts of the page share. */
export interface Store<Value> {
  get(): Value;
  set(value: Value): void;
  /** @returns the end of the subscription */
  subscribe(listener: () => void): () => void;
}

export function createStore<Value>(initial: Value): Store<Value> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The store's value; its change renders again. */
export function useStore<Value>(store: Store<Value>): Value {
  const [, setCount] = useState(0);
  useEffect(() => store.subscribe(() => setCount((count) => count + 1)), [store]);
  return store.get();
}
