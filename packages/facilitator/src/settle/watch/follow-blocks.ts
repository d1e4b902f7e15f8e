import { blockByNumber, parseBlockHeader } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import {
  finaliseBlocks,
  type KnownBlock,
  undoBlocks,
} from "../../ledger/transactions/undo-blocks.ts";
import type { SettlementNetwork } from "../context.ts";
import type { WatchContext } from "./watch-context.ts";

/** Takes back the contents of blocks that have left the chain. */
export async function takeBackBlocks(
  { context, network, onReorg }: WatchContext,
  blockHashes: readonly Hex[],
): Promise<void> {
  const { ledger, metrics, logger, emit } = context;
  if (blockHashes.length === 0) return;
  const undone = await undoBlocks(ledger, { network: network.network, blockHashes });
  for (const { authorization, wasDelivered } of undone) {
    metrics.reorganised.inc({ network: network.network, delivered: String(wasDelivered) });
    emit({ type: "settle_reorganised", authorization, wasDelivered });
  }
  if (undone.length > 0) {
    logger.warn(
      { network: network.network, payments: undone.length },
      "a reorganisation took payments back; they are followed again",
    );
  }
  onReorg();
}

/**
 * Asks the chain for blocks that this process has not seen on it, and takes back the missing ones.
 */
export async function undoUnseenBlocks(
  watch: WatchContext,
  known: readonly KnownBlock[],
  head: bigint,
): Promise<void> {
  const { network, canonical } = watch;
  const unseen = known.filter(({ hash, number }) => !canonical.has(hash) && number <= head);
  if (unseen.length === 0) return;
  const { present, absent } = await compare(network, unseen);
  for (const hash of present) canonical.add(hash);
  await takeBackBlocks(watch, absent);
}

/** Queries the chain, since finality is irreversible and a notification is no proof. */
export async function confirmFinality(
  watch: WatchContext,
  known: readonly KnownBlock[],
  head: bigint,
): Promise<void> {
  const { context, network } = watch;
  const finalHeight = head - BigInt(network.finalAfter);
  const deep = known.filter(({ number }) => number <= finalHeight);
  if (deep.length === 0) return;
  const { present, absent } = await compare(network, deep);
  await takeBackBlocks(watch, absent);
  await finaliseBlocks(context.ledger, { network: network.network, blockHashes: present });
}

/** Which of these blocks the chain still has. */
async function compare(
  { rpc }: SettlementNetwork,
  blocks: readonly KnownBlock[],
): Promise<{ present: Hex[]; absent: Hex[] }> {
  const present: Hex[] = [];
  const absent: Hex[] = [];
  const outcomes = await rpc.requestMany(blocks.map(({ number }) => blockByNumber(BigInt(number))));
  for (const [index, { hash }] of blocks.entries()) {
    const outcome = outcomes[index];
    if (outcome && !outcome.ok) throw outcome.error;
    const header = parseBlockHeader(outcome?.result ?? null);
    // A node without this height yet proves nothing about the block.
    if (header === undefined) continue;
    if (header.hash.toLowerCase() === hash) present.push(hash);
    else absent.push(hash);
  }
  return { present, absent };
}
