import type { Devnet } from "@coinslot/devnet";
import type { Logger } from "@coinslot/facilitator";
import { type Bought, buy } from "./buyer.ts";
import type { LiveChain } from "./live-chain.ts";
import type { PlannedPurchase } from "./purchase.ts";
import { signPurchase } from "./sign-purchase.ts";

/** Buyers who buy one after the other, with this concurrency. */
export interface Load {
  /** Admits this many purchases. */
  allow(count: number): void;
  /** Resolves when this many purchases have begun. */
  begun(count: number): Promise<void>;
  /** Resolves when every purchase has ended. */
  done: Promise<Bought[]>;
}

/** Starts the buyers; each purchase waits for its admission. */
export function startLoad(options: {
  devnet: Devnet;
  purchases: readonly PlannedPurchase[];
  /** Concurrent purchases. */
  concurrency: number;
  /** The URL of a living seller. Waits for one. */
  sellerUrl: () => Promise<string>;
  chain: LiveChain;
  /** Aborts buyers who still have no answer. */
  signal: AbortSignal;
  /** Called at the end of each purchase. */
  onBought?: (bought: Bought) => void;
  /** Records requests and answers. */
  log?: Logger | undefined;
}): Load {
  const { devnet, purchases, concurrency, sellerUrl, chain, signal, onBought, log } = options;
  let allowed = 0;
  let next = 0;
  let waiting: (() => void)[] = [];

  function changed(): void {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  }

  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => waiting.push(resolve));
  }

  async function buyInTurn(): Promise<Bought[]> {
    const bought: Bought[] = [];
    for (;;) {
      await until(() => next >= purchases.length || next < allowed);
      const planned = purchases[next];
      if (planned === undefined) return bought;
      next += 1;
      changed();
      const purchase = await signPurchase({ devnet, planned, sellerUrl, signal });
      let interfering: Promise<void> | undefined;
      const ended = await buy({
        purchase,
        signal,
        log,
        sellerUrl,
        onBegun() {
          interfering = chain.interfere(purchase);
        },
      });
      await interfering;
      bought.push(ended);
      onBought?.(ended);
    }
  }

  return {
    allow(count) {
      allowed = Math.max(allowed, count);
      changed();
    },
    begun: (count) => until(() => next >= Math.min(count, purchases.length)),
    done: Promise.all(Array.from({ length: concurrency }, buyInTurn)).then((lists) => lists.flat()),
  };
}
