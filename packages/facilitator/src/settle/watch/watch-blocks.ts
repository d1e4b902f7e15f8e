import { type BlockEvent, blockByNumber, parseBlockHeader } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import type { ConcludedPayment } from "../../ledger/payments/ledger-payment.ts";
import type { OrderedPayment, PendingPayment } from "../../ledger/queries/find-orders.ts";
import type { KnownBlock } from "../../ledger/transactions/blocks.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { findExecutions } from "../evidence/find-executions.ts";
import { keepLease } from "../relay/lease-keeper.ts";
import { createSingleFlight } from "../single-flight.ts";
import { endOverdue } from "./end-overdue.ts";

export interface BlockWatchOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  /** Called when transactions that were settled are open again. */
  onReorg: () => void;
}

/** What one process does for a network on behalf of all that share the ledger. */
export interface BlockWatch {
  /** Looks now, besides at every new block. */
  look(): void;
  stop(): Promise<void>;
}

/** Payments looked at in one round. */
const maxAtOnce = 500;
/** More than any depth at which payments are not final. */
const maxStanding = 2_000;

/**
 * Follows what has an outcome until it is final: takes back what stood in a block that left the
 * chain, marks what is deep enough, and watches failed payments, whose authorizations anybody may
 * still execute. One process at a time does so for a network, under a lease; everything it writes is
 * guarded by the state before, so two that overlap do no harm.
 */
export function startBlockWatch(options: BlockWatchOptions): BlockWatch {
  const { context, network, onReorg } = options;
  const { ledger, board, clock, times, logger, metrics, emit } = context;
  const { rpc, watcher, finalAfter } = network;
  let lease: Lease | undefined;
  /** Up to where failed payments have been looked for; a reorganisation sets it back. */
  const searchedTo = new Map<string, bigint>();
  /** The failed payment after which the next round goes on. An authorization may never expire. */
  let lookedAt = "";
  let left: Hex[] = [];
  /** Blocks that are known to stand on the chain. A block that came and went between two looks is not. */
  const standing = new Set<Hex>();

  const working = createSingleFlight(async () => {
    if (lease === undefined) return;
    try {
      await followChain();
    } catch (error) {
      standing.clear();
      logger.warn(
        { err: error, network: network.network },
        "the chain could not be followed; it is tried again",
      );
    }
  });
  const keeper = keepLease({
    leases: ledger.leases,
    name: `watch:${network.network}`,
    owner: ledger.processId,
    ttlMs: times.leaseMs,
    clock,
    logger,
    onChange(next) {
      lease = next;
      standing.clear();
      if (next) working.trigger();
    },
  });
  const unsubscribe = watcher.subscribe(onBlock);

  function onBlock(event: BlockEvent): void {
    if (event.type === "reorganised") {
      for (const { hash } of event.left) standing.delete(hash);
      left.push(...event.left.map(({ hash }) => hash));
      const [lowest] = event.left;
      for (const [id, height] of searchedTo) {
        if (lowest && height >= lowest.number) searchedTo.set(id, lowest.number - 1n);
      }
    }
    if (event.type === "advanced" || event.type === "reorganised") {
      for (const { hash } of event.entered) standing.add(hash);
    }
    if (event.type === "reset" || event.type === "reachable") {
      standing.clear();
      searchedTo.clear();
    }
    for (const oldest of standing) {
      if (standing.size <= maxStanding) break;
      standing.delete(oldest);
    }
    working.trigger();
  }

  async function followChain(): Promise<void> {
    const head = watcher.latest() ?? (await watcher.refresh());
    const gone = left;
    left = [];
    await undo(gone);
    const known = await ledger.findBlocks({ network: network.network });
    const unseen = known.filter(({ hash, number }) => !standing.has(hash) && number <= head.number);
    if (unseen.length > 0) {
      const { present, absent } = await compare(unseen);
      for (const hash of present) standing.add(hash);
      await undo(absent);
    }
    const finalHeight = head.number - BigInt(finalAfter);
    const deep = known.filter(({ number }) => number <= finalHeight);
    if (deep.length > 0) {
      // Final is for ever: what was heard is not enough, the chain is asked.
      const { present, absent } = await compare(deep);
      await undo(absent);
      await ledger.finaliseBlocks({ network: network.network, blockHashes: present });
    }
    await endOverdue({ context, network, head: head.number });
    await watchFailed(head.number);
  }

  async function undo(blockHashes: readonly Hex[]): Promise<void> {
    if (blockHashes.length === 0) return;
    const undone = await ledger.undoBlocks({ network: network.network, blockHashes });
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

  /** Which of these blocks the chain still has. */
  async function compare(
    blocks: readonly KnownBlock[],
  ): Promise<{ present: Hex[]; absent: Hex[] }> {
    const present: Hex[] = [];
    const absent: Hex[] = [];
    const outcomes = await rpc.requestMany(
      blocks.map(({ number }) => blockByNumber(BigInt(number))),
    );
    for (const [index, { hash }] of blocks.entries()) {
      const outcome = outcomes[index];
      if (outcome && !outcome.ok) throw outcome.error;
      const header = parseBlockHeader(outcome?.result ?? null);
      // A node that has not heard of the height yet says nothing of the block.
      if (header === undefined) continue;
      if (header.hash.toLowerCase() === hash) present.push(hash);
      else absent.push(hash);
    }
    return { present, absent };
  }

  /** Failed payments that somebody executed are confirmed; those that nobody can any more are closed. */
  async function watchFailed(head: bigint): Promise<void> {
    const finalHeight = head - BigInt(finalAfter);
    const failed = await ledger.findFailed({
      network: network.network,
      limit: maxAtOnce,
      afterId: lookedAt,
    });
    if (failed.length === 0 && lookedAt === "") return searchedTo.clear();
    lookedAt = failed.length === maxAtOnce ? (failed.at(-1)?.payment.id ?? "") : "";
    const searchable = failed.filter(({ payment }) => startOf(payment) <= head);
    if (searchable.length > 0) {
      const starts = searchable.map(({ payment }) => Number(startOf(payment)));
      const fromBlock = BigInt(Math.min(...starts));
      const found = await findExecutions({ rpc, payments: searchable, fromBlock, toBlock: head });
      const confirmed: ConcludedPayment[] = [];
      const spent: string[] = [];
      /** Looked for again in the same blocks: nothing in them is certain yet. */
      const unsettled = new Set<OrderedPayment>();
      for (const [each, execution] of found) {
        const { id } = each.payment;
        if (execution.outcome === "executed") {
          const { inclusion } = execution;
          const isDeep = Number(head) - inclusion.blockNumber >= network.serveAfter(each.payment);
          const outcomes = { confirmed: { ids: [id], inclusion } };
          const changed = isDeep ? await ledger.recordOutcomes([outcomes]) : [];
          confirmed.push(...changed);
          // Not deep enough yet. Or reserved again meanwhile: if it is given up, it is looked for here once more.
          if (changed.length === 0) unsettled.add(each);
        } else if (execution.outcome === "spent" && execution.blockNumber <= finalHeight) {
          spent.push(id);
        } else {
          unsettled.add(each);
        }
      }
      await ledger.closePayments(spent);
      board.publish(confirmed);
      for (const each of searchable) {
        if (!unsettled.has(each)) searchedTo.set(each.payment.id, head);
      }
    }
    await closeOver(failed, finalHeight);
  }

  async function closeOver(failed: readonly OrderedPayment[], height: bigint): Promise<void> {
    if (height < 0n) return;
    const header = parseBlockHeader(await rpc.request(blockByNumber(height)));
    if (header === undefined) return;
    const over = failed.filter(
      ({ payment }) =>
        payment.validBefore <= header.timestamp && (searchedTo.get(payment.id) ?? -1n) >= height,
    );
    await ledger.closePayments(over.map(({ payment }) => payment.id));
    for (const { payment } of over) searchedTo.delete(payment.id);
  }

  function startOf({ id, unusedAtBlock, inclusion }: PendingPayment): bigint {
    const searched = searchedTo.get(id);
    if (searched !== undefined) return searched + 1n;
    return BigInt(unusedAtBlock ?? inclusion?.blockNumber ?? 0) + 1n;
  }

  return {
    look: working.trigger,
    async stop() {
      unsubscribe();
      await working.stop();
      await keeper.stop();
    },
  };
}
