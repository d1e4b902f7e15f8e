import type { Database } from "@coinslot/storage";
import type { Address } from "viem";
import type { IndexerSchema } from "../../store/schema.ts";
import type { IndexedTransfer, TransferEvent } from "../../transfer.ts";
import type { ApiSource } from "../transfer-api.ts";
import type { SourceHealth } from "../transfer-source.ts";
import type { OwnedReceiver } from "../webhook-operations.ts";

/** A scripted indexer: transfers in memory, and a real database for keys and limits. */
export interface TestSource extends ApiSource {
  /** Newest first. */
  add(...transfers: IndexedTransfer[]): void;
  /** Takes a transfer back, as a reorganisation would. */
  retract(transfer: IndexedTransfer): void;
  /** Forgets events up to this one. */
  forgetEvents(upTo: number): void;
  setHealth(health: SourceHealth): void;
  /** Makes every read fail with this. */
  fail(error: Error): void;
  /** Makes reads of transfers fail after this many more. */
  failAfter(reads: number): void;
  /** Number of pages of transfers that have been read. */
  reads(): number;
}

export function createTestSource(
  database: Database<IndexerSchema>,
  receivers: readonly OwnedReceiver[] = [],
): TestSource {
  let transfers: IndexedTransfer[] = [];
  let events: TransferEvent[] = [];
  let lastEventId = 0;
  const listeners = new Set<() => void>();
  let forgotten = 0;
  let failure: Error | undefined;
  let readsUntilFailure = Number.POSITIVE_INFINITY;
  let reads = 0;
  let health: SourceHealth = {
    status: "healthy",
    isDatabaseHealthy: true,
    tokens: [
      { blockchain: "plasma", token: "usdt", isHealthy: true, lag: 0, rpcLatencyMs: 1.5 },
      { blockchain: "stable", token: "usdt", isHealthy: true, lag: 1, rpcLatencyMs: undefined },
    ],
  };

  function announce(type: TransferEvent["type"], transfer: IndexedTransfer): void {
    lastEventId += 1;
    events.push({ id: lastEventId, type, transfer });
    for (const listener of listeners) listener();
  }

  return {
    chains: [
      { name: "plasma", tokens: [{ name: "usdt" }, { name: "xaut" }] },
      { name: "stable", tokens: [{ name: "usdt" }] },
    ],
    database: async () => database,
    receivers,

    async readTransfers({ address, limit, fromMs, toMs = Infinity, sort, after, ...name }) {
      if (failure) throw failure;
      if (readsUntilFailure === 0) throw new Error("This read fails.");
      readsUntilFailure -= 1;
      reads += 1;
      const direction = sort === "asc" ? 1 : -1;
      return transfers
        .filter((each) => isOf(each, name) && isAt(each, address))
        .filter(({ timestamp }) => timestamp >= fromMs && timestamp <= toMs)
        .sort((one, other) => direction * comparePlaces(one, other))
        .filter((each) => after === undefined || direction * comparePlaces(each, after) > 0)
        .slice(0, limit);
    },

    async readTransactionTransfers({ transactionHash, ...name }) {
      if (failure) throw failure;
      return transfers
        .filter((each) => isOf(each, name) && each.transactionHash === transactionHash)
        .sort(comparePlaces);
    },

    async readBalance({ address, ...name }) {
      if (failure) throw failure;
      return transfers
        .filter((each) => isOf(each, name))
        .reduce(
          (sum, { from, to, amount }) =>
            sum + (to === address ? amount : 0n) - (from === address ? amount : 0n),
          0n,
        );
    },

    readHealth: async () => health,

    async readEvents({ address, after, limit, ...name }) {
      if (failure) throw failure;
      const found = events
        .filter(({ id, transfer }) => id > after && isOf(transfer, name) && isAt(transfer, address))
        .slice(0, limit);
      const lastId = found.length === limit ? (found.at(-1)?.id ?? after) : lastEventId;
      return { events: found, lastId, isIncomplete: after < forgotten };
    },

    readLastEventId: async () => lastEventId,

    onEvents(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },

    add(...added) {
      for (const transfer of added) {
        transfers.push(transfer);
        announce("transfer", transfer);
      }
    },
    retract(retracted) {
      transfers = transfers.filter((each) => each !== retracted);
      announce("retraction", retracted);
    },
    forgetEvents(upTo) {
      forgotten = upTo;
      events = events.filter(({ id }) => id > upTo);
    },
    setHealth(next) {
      health = next;
    },
    fail(error) {
      failure = error;
    },
    failAfter(count) {
      readsUntilFailure = count;
    },
    reads: () => reads,
  };
}

interface Place {
  blockNumber: number;
  logIndex: number;
}

function comparePlaces(one: Place, other: Place): number {
  return one.blockNumber - other.blockNumber || one.logIndex - other.logIndex;
}

function isOf(
  transfer: { blockchain: string; token: string },
  { blockchain, token }: { blockchain: string; token: string },
): boolean {
  return transfer.blockchain === blockchain && transfer.token === token;
}

function isAt({ from, to }: { from: Address; to: Address }, address: Address): boolean {
  return from === address || to === address;
}
