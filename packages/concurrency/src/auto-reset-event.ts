/** Auto-reset event: wakes one reader. Sets that come while the reader works are coalesced. */
export interface AutoResetEvent {
  set(): void;
  /**
   * Resolves at the next `set`, at once if there was one since the last wait, or after `timeoutMs`.
   * One wait at a time.
   */
  wait(timeoutMs: number): Promise<void>;
}

/**
 * Creates an event that is not set.
 *
 * ```text
 *   clear ──set──► set ──wait──► clear
 *     │ wait                       ▲
 *     └──► waiting ──set, time─────┘
 * ```
 *
 * | Race | Why it is safe |
 * |---|---|
 * | A set between the reader's last read and its wait | The event stays set, and the wait resolves at once |
 * | Sets between the wake-up and the reader's next read | One wake-up stands for them: the read comes after all of them |
 */
export function createAutoResetEvent(): AutoResetEvent {
  let isSet = false;
  let wake: (() => void) | undefined;

  return {
    set() {
      isSet = true;
      wake?.();
    },
    async wait(timeoutMs) {
      if (!isSet) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        wake = undefined;
      }
      isSet = false;
    },
  };
}
