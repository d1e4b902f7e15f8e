import type { BlockWatcher, Clock, RpcRequester } from "@coinslot/chain";
import type { LedgerPayment } from "../../ledger/payments/ledger-payment.ts";
import { readAuthorizationStates } from "./authorization-states.ts";

/** Open payments that are missing in their payer's balance already. */
export interface DebitedPayments {
  /**
   * Those of one payer's payments that were executed or cancelled by the end of a block, by their
   * ids.
   *
   * @throws RpcError when the chain is unreachable.
   */
  find(options: {
    payments: readonly Pick<LedgerPayment, "id" | "kind" | "authorization">[];
    blockNumber: bigint;
  }): Promise<readonly string[]>;
}

/** Blocks, payments and payers change; older results are of no use. */
const maxCached = 10_000;
/** A reorganisation may pass between two looks at the chain: no reading is used for longer. */
const freshMs = 1_000;

/**
 * Creates a reader that reads each payment once for a block. A payer signs payments beyond its
 * balance for nothing. Without the cache each of them would cost as many calls as it has open
 * payments. A reorganisation empties it, and a second: a block number then names another block.
 */
export function createDebitedPayments({
  rpc,
  watcher,
  clock,
}: {
  rpc: RpcRequester;
  watcher: Pick<BlockWatcher, "subscribe">;
  clock: Pick<Clock, "now">;
}): DebitedPayments {
  /** Insertion order is age order. */
  const cached = new Map<string, Promise<boolean | undefined>>();
  let begunAt = clock.now();
  watcher.subscribe(
    ({ type }) => {
      if (type === "reorganised" || type === "reset") cached.clear();
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );

  return {
    async find({ payments, blockNumber }) {
      if (clock.now() - begunAt >= freshMs) {
        cached.clear();
        begunAt = clock.now();
      }
      const keyed = payments.map((payment) => ({ payment, key: `${payment.id}/${blockNumber}` }));
      const unread = keyed.filter(({ key }) => !cached.has(key));
      if (unread.length > 0) {
        const asked = unread.map(({ payment }) => payment);
        const reading = readAuthorizationStates({ rpc, payments: asked, blockNumber });
        for (const [index, { key }] of unread.entries()) {
          cached.set(
            key,
            reading.then((states) => states[index]),
          );
        }
      }
      const states = keyed.map(({ key }) => cached.get(key));
      for (const oldest of cached.keys()) {
        if (cached.size <= maxCached) break;
        cached.delete(oldest);
      }
      try {
        const used = await Promise.all(states);
        for (const [index, { key }] of keyed.entries()) {
          // No answer is none: the next caller asks again.
          if (used[index] === undefined) cached.delete(key);
        }
        return payments.flatMap(({ id }, index) => (used[index] === true ? id : []));
      } catch (error) {
        for (const { key } of unread) cached.delete(key);
        throw error;
      }
    },
  };
}
