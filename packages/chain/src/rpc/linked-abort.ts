import { setMaxListeners } from "node:events";

/**
 * Runs `work` with a signal that any of `sources` aborts; then rejects with the reason of the one
 * that did, at once. Leaves no listener behind, unlike `AbortSignal.any`, which Node 20 keeps alive
 * for as long as a source lives.
 */
export async function withLinkedAbort<T>(
  sources: readonly AbortSignal[],
  work: (controller: AbortController) => Promise<T>,
): Promise<T> {
  for (const source of sources) source.throwIfAborted();
  // Many requests share a signal, and each takes its listener back: no leak to be warned of.
  setMaxListeners(0, ...sources);
  const controller = new AbortController();
  const { promise: aborted, reject } = withReject();
  const listeners = sources.map((source) => {
    const listener = () => {
      reject(source.reason);
      controller.abort(source.reason);
    };
    source.addEventListener("abort", listener, { once: true });
    return () => source.removeEventListener("abort", listener);
  });
  try {
    return await Promise.race([aborted, work(controller)]);
  } finally {
    for (const removeListener of listeners) removeListener();
  }
}

function withReject() {
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<never>((_, rejectPromise) => {
    reject = rejectPromise;
  });
  return { promise, reject };
}
