import { base } from "./ask.ts";
import { createStore } from "./store.ts";

/** Whether the page hears of changes: `live`, or since when it does not. */
export type Liveness = { kind: "connecting" } | { kind: "live" } | { kind: "lost"; since: number };

export const liveness = createStore<Liveness>({ kind: "connecting" });

/** Counts the changes of the ledger that the console has reported, and the page's own acts. */
export const changes = createStore(0);

/** Makes all that the page shows be read again. */
export function noteChange(): void {
  changes.set(changes.get() + 1);
}

const pauseMs = 1_000;

/**
 * Listens to the console until the returned function is called. The browser connects again by
 * itself. Changes in quick succession are one, and none is noticed on a hidden page until it is
 * seen again.
 */
export function listenToEvents(): () => void {
  const source = new EventSource(`${base}/api/events`);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isDue = false;

  const notice = () => {
    isDue = true;
    if (document.hidden) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      isDue = false;
      noteChange();
    }, pauseMs);
  };
  const show = () => {
    if (isDue) notice();
  };
  source.addEventListener("open", () => {
    // Changes while the stream was lost are read again.
    if (liveness.get().kind === "lost") notice();
    liveness.set({ kind: "live" });
  });
  source.addEventListener("changed", notice);
  source.addEventListener("stale", () => lose());
  source.addEventListener("ended", () => {
    source.close();
    lose();
    notice();
  });
  source.addEventListener("error", () => lose());
  document.addEventListener("visibilitychange", show);
  return () => {
    source.close();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", show);
  };
}

function lose(): void {
  if (liveness.get().kind !== "lost") liveness.set({ kind: "lost", since: Date.now() });
}
