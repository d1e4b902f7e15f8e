/**
 * Runs `action` once and shares its result; a failed attempt is forgotten, so that the next call
 * tries again.
 */
export function onceSuccessful<Result>(action: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined;
  return function run() {
    running ??= action().catch((error: unknown) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}
