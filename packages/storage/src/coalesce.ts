/**
 * Coalesces repeated calls. While one call for a key runs, later calls for the same key wait for
 * it. They then share a single further run, so every caller's run starts after its call.
 */
export function coalesce(action: (key: string) => Promise<void>): (key: string) => Promise<void> {
  const running = new Map<string, Promise<void>>();
  const waiting = new Map<string, Promise<void>>();

  function start(key: string): Promise<void> {
    const run = action(key).finally(() => running.delete(key));
    running.set(key, run);
    return run;
  }

  return (key) => {
    const shared = waiting.get(key);
    if (shared !== undefined) return shared;
    const current = running.get(key);
    if (current === undefined) return start(key);
    const startNext = () => {
      waiting.delete(key);
      return start(key);
    };
    const next = current.then(startNext, startNext);
    waiting.set(key, next);
    return next;
  };
}
