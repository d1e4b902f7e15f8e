import { createMutex, type Mutex } from "./mutex.ts";

/** One mutex for each key. */
export interface KeyedMutex<Key> {
  /** As `run` of a mutex, among the callers with the same key. */
  run<Result>(key: Key, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
  /** Callers with this key that hold the mutex or wait for it. */
  count(key: Key): number;
}

/** Creates a keyed mutex. A key costs memory while it has callers. */
export function createKeyedMutex<Key>(): KeyedMutex<Key> {
  const places = new Map<Key, { mutex: Mutex; callers: number }>();
  return {
    async run(key, work, signal) {
      const place = places.get(key) ?? { mutex: createMutex(), callers: 0 };
      places.set(key, place);
      place.callers += 1;
      try {
        return await place.mutex.run(work, signal);
      } finally {
        place.callers -= 1;
        if (place.callers === 0) places.delete(key);
      }
    },
    count: (key) => places.get(key)?.callers ?? 0,
  };
}
