import { settledHistorySeconds } from "../chain/chain-reader.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { type ChannelLedger, lookAtChain } from "./channel-ledger.ts";
import type { ChannelStore } from "./channel-store.ts";
import type { Lanes } from "./lanes.ts";

/** Channels per purchase. The first one is random: one that no node knows hides no other. */
const freedAtOnce = 5;

/**
 * Frees the budget and `locked` of channels whose deposit has expired unexecuted: their sellers may
 * never be asked again. It needs the word of two hosts. A channel in use is left alone. Never
 * throws: the purchase needs no room of another.
 */
export async function freeDeadDeposits(
  context: PayingFetchContext,
  { store, locks }: { store: ChannelStore; locks: Lanes },
): Promise<void> {
  const { account, chains, now, randomBytes } = context;
  const latest = Math.floor(now() / 1000) - settledHistorySeconds;
  const dead = store.list().filter(({ deposit, network, config }) => {
    const isOwn = config.payer === account.address.toLowerCase();
    return isOwn && deposit && deposit.validBefore < latest && chains.hasWitnesses(network);
  });
  if (dead.length === 0) return;
  const from = (randomBytes(1)[0] ?? 0) % dead.length;
  const inTurn = [...dead.slice(from), ...dead.slice(0, from)].slice(0, freedAtOnce);
  const ledger: ChannelLedger = { context, store };
  const free = async (id: string) => {
    const held = await locks.tryAcquire(id);
    try {
      const record = held && store.find(id);
      if (record) await lookAtChain(ledger, record);
    } finally {
      held?.release();
    }
  };
  await Promise.allSettled(inTurn.map(({ id }) => free(id)));
}
