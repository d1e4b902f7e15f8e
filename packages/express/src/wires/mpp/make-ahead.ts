/** Most values that are made at once. */
const maxAtOnce = 32;

/** Makes a value for a key that is asked for again and again. */
export type MakeAhead<Key, Value> = (make: (key: Key) => Value, key: Key) => Value;

/**
 * Makes values in groups, each of which is given out once: in a loop, a challenge takes a third of
 * the time that it takes between other work. A group has twice as many as the one before it. So no
 * more are made in vain than were asked for. Only values for the last function and key are kept:
 * callers cannot fill the memory by asking for others.
 */
export function createMakeAhead<Key, Value>(): MakeAhead<Key, Value> {
  let made: Value[] = [];
  let atOnce = 1;
  let lastMake: ((key: Key) => Value) | undefined;
  let lastKey: Key | undefined;
  return (make, key) => {
    if (make !== lastMake || key !== lastKey) {
      made = [];
      atOnce = 1;
      lastMake = make;
      lastKey = key;
    }
    const ready = made.pop();
    if (ready !== undefined) return ready;
    for (let count = 1; count < atOnce; count += 1) made.push(make(key));
    atOnce = Math.min(2 * atOnce, maxAtOnce);
    return make(key);
  };
}
