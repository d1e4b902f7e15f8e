import type { BlockWatcher, Clock, RpcCall, RpcRequester } from "@coinslot/chain";
import { hexWord } from "../../evm/word.ts";
import type { BalanceKey } from "../../ledger/payments/committed-balance.ts";
import type { LedgerPayment } from "../../ledger/payments/ledger-payment.ts";
import { schemeOf } from "../../schemes/registry.ts";
import { stateCall, wordOf } from "./authorization-states.ts";

/** Open payments that are missing in their payer's balance already. */
export interface DebitedPayments {
  /**
   * Those of one payer's payments that were executed or cancelled by the end of a block, by their
   * ids. Its balance there; `undefined` where the token returns none.
   *
   * @throws RpcError when the chain is unreachable.
   */
  find(options: {
    payments: readonly Pick<LedgerPayment, "id" | "kind" | "authorization">[];
    of: BalanceKey;
    blockNumber: bigint;
  }): Promise<{ debited: readonly string[]; balance: bigint | undefined }>;
}

/** Blocks, payments and payers change; older results are of no use. */
const maxCached = 10_000;
/** A reorganisation may pass between two looks at the chain: no reading is used for longer. */
const freshMs = 1_000;

/** `balanceOf(address)`, ERC-20. */
const balanceSelector = "0x70a08231";

/**
 * Creates a reader that reads each payment and balance once for a block. A payer signs payments
 * beyond its balance for nothing. Without the cache each of them would cost as many calls as it has
 * open payments. A reorganisation empties it, and a second: a block number then names another
 * block.
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
  /** Words that the token returned. Insertion order is age order. */
  const cached = new Map<string, Promise<bigint | undefined>>();
  let begunAt = clock.now();
  watcher.subscribe(
    ({ type }) => {
      if (type === "reorganised" || type === "reset") cached.clear();
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );

  /** All that is not known in one request: a node may have the next block between two. */
  async function read(calls: ReadonlyMap<string, RpcCall>, minBlock: bigint) {
    const unread = [...calls].filter(([key]) => !cached.has(key));
    if (unread.length > 0) {
      const asked = unread.map(([, call]) => call);
      const reading = rpc.requestMany(asked, { minBlock }).then((answers) => answers.map(wordOf));
      for (const [index, [key]] of unread.entries()) {
        cached.set(
          key,
          reading.then((words) => words[index]),
        );
      }
    }
    const readings = [...calls.keys()].map((key) => cached.get(key));
    for (const oldest of cached.keys()) {
      if (cached.size <= maxCached) break;
      cached.delete(oldest);
    }
    try {
      const words = await Promise.all(readings);
      // No answer is none: the next caller asks again.
      for (const [index, key] of [...calls.keys()].entries()) {
        if (words[index] === undefined) cached.delete(key);
      }
      return words;
    } catch (error) {
      for (const [key] of unread) cached.delete(key);
      throw error;
    }
  }

  return {
    async find({ payments, of: { asset, payer }, blockNumber }) {
      if (clock.now() - begunAt >= freshMs) {
        cached.clear();
        begunAt = clock.now();
      }
      const block = `0x${blockNumber.toString(16)}`;
      const balanceOf = { to: asset, data: `${balanceSelector}${hexWord(payer)}` };
      const calls = new Map<string, RpcCall>([
        [`${asset}/${payer}/${block}`, { method: "eth_call", params: [balanceOf, block] }],
        ...payments.map((each) => [`${each.id}/${block}`, stateCall(each, block)] as const),
      ]);
      const [balance, ...states] = await read(calls, blockNumber);
      const debited = payments.flatMap((payment, index) => {
        const state = states[index];
        const { isUsed } = schemeOf(payment);
        return state !== undefined && isUsed(payment.authorization, state) ? payment.id : [];
      });
      return { debited, balance };
    },
  };
}
