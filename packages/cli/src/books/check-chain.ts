import type { BookedTransfer, BooksReader } from "@coinslot/facilitator";
import type { Address, Network } from "@coinslot/protocol";
import type { ChainSource } from "./chain-source.ts";
import type { TransferLog } from "./transfer-logs.ts";

/** Unmatched transfers in memory, at most. */
const maxCarried = 50_000;

/** Result of a comparison with one chain. */
export interface ChainComparison {
  network: Network;
  /** Source of the transfers. */
  by: ChainSource["kind"];
  /** Confirmed payments and refunds whose `Transfer` was found. */
  found: number;
  /** Those of them that a node has, and the index has not: it may begin later. */
  byNodeAlone: number;
  /** Those that are not final yet, and are not compared. */
  pending: number;
  /** Final ones without their `Transfer`. */
  missing: BookedTransfer[];
  /** Transfers of payments that the ledger does not have as confirmed. */
  unposted: TransferLog[];
  /** Transfers to a recipient of sales that no payment has made. */
  foreign: TransferLog[];
  /** Number of those from the time of payments that are forgotten: the books have their sums. */
  summed: number;
}

/** Compares the payments of one network with its chain. */
export interface ChainCheck {
  /** Compares the next payments, in the order of their creation. */
  compare(transfers: readonly BookedTransfer[]): Promise<void>;
  /** Reads on to the newest final block, or, of a time in the past, no further. */
  finish(options: { isPast: boolean }): Promise<ChainComparison>;
}

/**
 * Matches payments with the transfers of the blocks up to theirs. Both come in about the same
 * order, so few are unmatched at a time. A payment that is left is looked up by its transaction, a
 * transfer that is left by its payer: neither is named before that.
 */
export function createChainCheck(options: {
  source: ChainSource;
  /** A second source, asked for what the first one lacks. */
  node?: ChainSource | undefined;
  network: Network;
  books: Pick<BooksReader, "findTransfer" | "findUnconfirmed">;
  /** Unix milliseconds: end of the last day of a token whose entries are closed into sums. */
  summedBefore: (asset: Address) => number | undefined;
  /** Receives the last block that was read. */
  onBlock: (block: number) => void;
}): ChainCheck {
  const { source, node, network, books, summedBefore, onBlock } = options;
  const result = emptyComparison(network, source.kind);
  const assets = new Set<Address>();
  const recipients = new Set<Address>();
  const floats = new Set<Address>();
  const carried = new Map<string, TransferLog[]>();
  let carriedCount = 0;
  /** Payments matched by their key, of this page and the one before. */
  let matched = new Map<string, number>();
  let before = new Map<string, number>();
  let readTo: number | undefined;

  async function readOn(to: number): Promise<void> {
    if (readTo === undefined || to <= readTo) return;
    const watched = { assets: [...assets], to: [...recipients], from: [...floats] };
    for await (const { transfers, to: end } of source.readBlocks(
      { from: readTo + 1, to },
      watched,
    )) {
      for (const transfer of transfers) {
        const key = keyOf(transfer);
        carried.set(key, [...(carried.get(key) ?? []), transfer]);
        carriedCount += 1;
      }
      readTo = end;
      onBlock(end);
      if (carriedCount > maxCarried) await letGo(end);
    }
  }

  /** Names the transfers up to a block that no payment has made. */
  async function letGo(upTo: number): Promise<void> {
    for (const [key, transfers] of carried) {
      const [first] = transfers;
      if (first === undefined || first.blockNumber > upTo) continue;
      carried.delete(key);
      carriedCount -= transfers.length;
      const isKnown = matched.has(key) || before.has(key);
      for (const transfer of transfers) {
        // The float is an account of its owner: it may pay for other things.
        if (!recipients.has(transfer.to)) continue;
        const owner = isKnown ? undefined : await books.findTransfer({ network, ...transfer });
        if (owner !== undefined) continue;
        const verdict = await judge(transfer);
        if (verdict === "summed") result.summed += 1;
        else result[verdict].push(transfer);
      }
    }
  }

  /** A transfer that used the nonce of a payment which is not confirmed: it is sold, not posted. */
  async function judge(transfer: TransferLog): Promise<"foreign" | "unposted" | "summed"> {
    const open = await books.findUnconfirmed({ network, ...transfer });
    if (open.length > 0) {
      const topics = await source.readTopics(transfer.transaction);
      // Without them it may be: a difference is named rather than passed over.
      if (topics === undefined || open.some(({ nonce }) => topics.has(nonce))) return "unposted";
    }
    const before = summedBefore(transfer.asset);
    if (before === undefined) return "foreign";
    return (await source.isBefore(transfer, before)) ? "summed" : "foreign";
  }

  async function match(payment: BookedTransfer): Promise<void> {
    if (payment.blockNumber > (source.lastBlock ?? Number.POSITIVE_INFINITY)) {
      result.pending += 1;
      return;
    }
    const key = keyOf(payment);
    const count = (matched.get(key) ?? 0) + (before.get(key) ?? 0);
    const transfers = carried.get(key);
    if (transfers?.pop()) {
      carriedCount -= 1;
      if (transfers.length === 0) carried.delete(key);
    } else if (payment.isFinal) {
      // A node may have left it out, or it is from before the first block that was read.
      const has = async (place: ChainSource) =>
        (await place.readTransaction(payment)).filter((log) => keyOf(log) === key).length > count;
      if (!(await has(source))) {
        if (node === undefined || !(await has(node))) {
          result.missing.push(payment);
          return;
        }
        result.byNodeAlone += 1;
      }
    }
    if (payment.isFinal) result.found += 1;
    else result.pending += 1;
    matched.set(key, (matched.get(key) ?? 0) + 1);
  }

  return {
    async compare(transfers) {
      if (transfers.length === 0) return;
      before = matched;
      matched = new Map();
      for (const { asset, to, from, kind } of transfers) {
        assets.add(asset);
        if (kind === "refund") floats.add(from);
        else if (to !== undefined) recipients.add(to);
      }
      const blocks = transfers.map(({ blockNumber }) => blockNumber);
      const first = blocks.reduce((one, other) => Math.min(one, other));
      readTo ??= first - 1;
      await readOn(blocks.reduce((one, other) => Math.max(one, other)));
      for (const payment of transfers) await match(payment);
      // Refunds come after the payments of their time: those of the time after it are not read yet.
      if (transfers.some(({ kind }) => kind === "payment")) await letGo(first - 1);
    },
    async finish({ isPast }) {
      if (!isPast) await readOn(await source.readFinalBlock());
      await letGo(Number.POSITIVE_INFINITY);
      return result;
    },
  };
}

function emptyComparison(network: Network, by: ChainSource["kind"]): ChainComparison {
  return {
    network,
    by,
    found: 0,
    byNodeAlone: 0,
    pending: 0,
    missing: [],
    unposted: [],
    foreign: [],
    summed: 0,
  };
}

/** A payment without a known recipient matches none: it is looked up by its transaction. */
function keyOf(transfer: Omit<TransferLog, "to" | "logIndex"> & { to?: Address | undefined }) {
  const { transaction, asset, from, to, amount } = transfer;
  return `${transaction}/${asset}/${from}/${to}/${amount}`;
}
