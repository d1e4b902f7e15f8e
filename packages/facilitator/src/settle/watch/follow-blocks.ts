import { type BlockHeader, blockByNumber, blockHeaderSchema } from "@coinslot/chain";
import {
  finaliseBlocks,
  type KnownBlock,
  undoBlocks,
} from "../../ledger/transactions/undo-blocks.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { maxAhead } from "../evidence/find-executions.ts";
import { isOld } from "../evidence/is-stuck.ts";
import { isAwaited, noteAnswer } from "../evidence/silences.ts";
import { compareBlocks } from "./compare-blocks.ts";
import type { WatchContext } from "./watch-context.ts";

/** The part of the watch over blocks that follows those that are not final. */
interface FollowWatch extends Pick<WatchContext, "canonical" | "farSince" | "onReorg"> {
  context: Pick<SettlementContext, "ledger" | "metrics" | "logger" | "emit" | "clock" | "now"> & {
    times: Pick<SettlementContext["times"], "disputeMs">;
  };
  network: Pick<SettlementNetwork, "network" | "rpc" | "finalAfter">;
}

/** Takes back the contents of blocks that have left the chain. */
export async function takeBackBlocks(
  { context, network, onReorg }: FollowWatch,
  blocks: readonly KnownBlock[],
): Promise<void> {
  const { ledger, metrics, logger, emit } = context;
  if (blocks.length === 0) return;
  const undone = await undoBlocks(ledger, { network: network.network, blocks });
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
 * Asks the chain for the blocks that are deep enough, and for those that this process has not seen.
 * Takes back the missing ones, and makes the deep ones final. Each deep one is asked for, since
 * finality is irreversible and a notification is no proof. Those far above the chain are taken
 * back, too: a node has made them up, and the chain would be as high in years.
 */
export async function followBlocks(
  watch: FollowWatch,
  known: readonly KnownBlock[],
  head: bigint,
): Promise<void> {
  const { context, network, canonical } = watch;
  await takeBackBlocks(watch, await findFarBlocks(watch, known, head));
  const finalHeight = head - BigInt(network.finalAfter);
  const asked = known.filter(
    ({ hash, number }) => number <= finalHeight || (number <= head && !canonical.has(hash)),
  );
  if (asked.length === 0) return;
  const { present, absent, refused } = await compareBlocks(network.rpc, asked);
  if (refused.length > 0) {
    context.logger.warn(
      { network: network.network, blocks: refused.length, lowest: refused[0]?.number },
      "no node shows some recent blocks: their payments become final later",
    );
  }
  for (const { hash } of present) canonical.add(hash);
  await takeBackBlocks(watch, absent);
  const deep = present.filter(({ number }) => number <= finalHeight);
  await finaliseBlocks(context.ledger, { network: network.network, blocks: deep });
}

/**
 * Blocks that have been far above the head for `times.disputeMs`, and are so at each endpoint. One
 * that does not return its head is awaited, for ten minutes at most.
 */
async function findFarBlocks(
  watch: FollowWatch,
  known: readonly KnownBlock[],
  head: bigint,
): Promise<KnownBlock[]> {
  const { context, network, farSince } = watch;
  const now = context.clock.now();
  const isFarAbove = (height: bigint) => (block: KnownBlock) =>
    BigInt(block.number) > height + BigInt(network.finalAfter) + maxAhead;
  const far = known.filter(isFarAbove(head));
  watch.farSince = new Map(far.map(({ hash }) => [hash, farSince.get(hash) ?? now]));
  const { disputeMs } = context.times;
  const due = far.filter(({ hash }) => now - (farSince.get(hash) ?? now) >= disputeMs);
  if (due.length === 0) return [];
  const heads = await readHeads(watch);
  // One that is stuck shows nothing about newer blocks.
  const heights = heads.flatMap((header) => (isOld(header, context.now()) ? [] : header.number));
  if (heights.length === 0) return [];
  const madeUp = due.filter((block) => heights.every((height) => isFarAbove(height)(block)));
  if (madeUp.length > 0) {
    context.logger.error(
      { network: network.network, blocks: madeUp.length, lowest: madeUp[0]?.number },
      "a node has named blocks far above the chain: their payments are followed again",
    );
  }
  return madeUp;
}

/** The heads of the endpoints that have a say; none while one that does not answer is awaited. */
async function readHeads({ context, network }: FollowWatch): Promise<BlockHeader[]> {
  const heads = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      try {
        const header = blockHeaderSchema.parse(await endpoint.request(blockByNumber("latest")));
        noteAnswer(endpoint, ["head"]);
        return header;
      } catch (error) {
        const silent = { network, endpoint, subjects: ["head"], error };
        return isAwaited(context, silent) ? "awaited" : undefined;
      }
    }),
  );
  if (heads.includes("awaited")) return [];
  return heads.flatMap((head) => (head === undefined || head === "awaited" ? [] : head));
}
