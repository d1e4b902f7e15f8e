import type { LoadGate } from "./channel-buyer.ts";

/** The purchases of all channels, with a bound on those at a time. */
export interface ChannelLoad {
  gate: LoadGate;
  /** Admits this many purchases. */
  allow(count: number): void;
  /** Resolves when this many purchases have begun, or no buyer is left. */
  begun(count: number): Promise<void>;
  /** The faults are over: closing purchases begin. */
  calm(): void;
  /** The buyers have ended. */
  end(): void;
}

export function createChannelLoad(concurrency: number): ChannelLoad {
  let calmDown: () => void = () => undefined;
  const calm = new Promise<void>((resolve) => {
    calmDown = resolve;
  });
  let [allowed, started, running] = [0, 0, 0];
  let isEnded = false;
  let waiting: (() => void)[] = [];

  function changed(): void {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  }

  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => waiting.push(resolve));
  }

  return {
    gate: {
      calm,
      async enter() {
        await until(() => running < concurrency && started < allowed);
        started += 1;
        running += 1;
        changed();
        return () => {
          running -= 1;
          changed();
        };
      },
    },
    allow(count) {
      allowed = Math.max(allowed, count);
      changed();
    },
    begun: (count) => until(() => isEnded || started >= count),
    calm() {
      calmDown();
      changed();
    },
    end() {
      isEnded = true;
      changed();
    },
  };
}
