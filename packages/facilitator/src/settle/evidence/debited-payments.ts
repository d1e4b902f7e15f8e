import {
  type BlockWatcher,
  type Clock,
  type RpcRequester,
  RpcUnavailableError,
} from "@coinslot/chain";
import { hexWord } from "../../evm/word.ts";
import type { BalanceKey } from "../../ledger/payments/committed-balance.ts";
import type { LedgerPayment } from "../../ledger/payments/ledger-payment.ts";
import { readAuthorizationStates, wordSchema } from "./authorization-states.ts";

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
  const states = createReadings<boolean>();
  const balances = createReadings<bigint>();
  let begunAt = clock.now();
  const forget = () => {
    states.clear();
    balances.clear();
    begunAt = clock.now();
  };
  watcher.subscribe(
    ({ type }) => {
      if (type === "reorganised" || type === "reset") forget();
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );

  /** By the number of the block, whatever the newest one is meanwhile. */
  async function readBalance({ asset, payer }: BalanceKey, blockNumber: bigint) {
    const params = [
      { to: asset, data: `${balanceSelector}${hexWord(payer)}` },
      `0x${blockNumber.toString(16)}`,
    ];
    const [answer] = await rpc.requestMany([{ method: "eth_call", params }], {
      minBlock: blockNumber,
    });
    if (answer?.ok === false && answer.error instanceof RpcUnavailableError) throw answer.error;
    return wordSchema.safeParse(answer?.ok ? answer.result : undefined).data;
  }

  return {
    async find({ payments, of, blockNumber }) {
      if (clock.now() - begunAt >= freshMs) forget();
      const [used, [balance]] = await Promise.all([
        states.read(
          payments.map(({ id }) => `${id}/${blockNumber}`),
          (indexes) =>
            readAuthorizationStates({
              rpc,
              payments: payments.filter((_, index) => indexes.includes(index)),
              blockNumber,
            }),
        ),
        balances.read([`${of.asset}/${of.payer}/${blockNumber}`], async () => [
          await readBalance(of, blockNumber),
        ]),
      ]);
      const debited = payments.flatMap(({ id }, index) => (used[index] === true ? id : []));
      return { debited, balance };
    },
  };
}

/** Readings that are shared for as long as they are fresh. */
function createReadings<Value>() {
  /** Insertion order is age order. */
  const cached = new Map<string, Promise<Value | undefined>>();
  return {
    clear: () => cached.clear(),
    /** @param read reads those that are not known, by their places among the keys */
    async read(
      keys: readonly string[],
      read: (indexes: readonly number[]) => Promise<readonly (Value | undefined)[]>,
    ): Promise<(Value | undefined)[]> {
      const unread = keys.flatMap((key, index) => (cached.has(key) ? [] : index));
      if (unread.length > 0) {
        const reading = read(unread);
        for (const [place, index] of unread.entries()) {
          cached.set(
            keys[index] ?? "",
            reading.then((values) => values[place]),
          );
        }
      }
      const readings = keys.map((key) => cached.get(key));
      for (const oldest of cached.keys()) {
        if (cached.size <= maxCached) break;
        cached.delete(oldest);
      }
      try {
        const values = await Promise.all(readings);
        // No answer is none: the next caller asks again.
        for (const [index, key] of keys.entries()) {
          if (values[index] === undefined) cached.delete(key);
        }
        return values;
      } catch (error) {
        for (const index of unread) cached.delete(keys[index] ?? "");
        throw error;
      }
    },
  };
}
