/** Wake-up signal of a reader: rings that come while it works are coalesced into one. */
export interface WakeUp {
  ring(): void;
  /** Resolves at the next ring, at once if there was one since the last, or after `ms`. */
  wait(ms: number): Promise<void>;
}

export function createWakeUp(): WakeUp {
  let hasRung = false;
  let wake: (() => void) | undefined;

  return {
    ring() {
      hasRung = true;
      wake?.();
    },
    async wait(ms) {
      if (!hasRung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        wake = undefined;
      }
      hasRung = false;
    },
  };
}
