import { setMaxListeners } from "node:events";

/**
 * Runs `work` with a signal that any of `sources` aborts; then rejects at once with that source's
 * reason. Leaves no listener behind. `AbortSignal.any` does: Node 20 keeps it alive as long as a
 * source lives.
 */
export async function withLinkedAbort<T>(
  sources: readonly AbortSignal[],
  work: (controller: AbortController) => Promise<T>,
): Promise<T> {
  for (const source of sources) source.throwIfAborted();
  // Many requests share a signal, and each removes its listener: no leak to warn of.
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
