import { sleep, systemClock } from "@coinslot/chain";
import { ApiError, type TransferRecord, type TransferService } from "@coinslot/indexer";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import type { ChainSource } from "./chain-source.ts";
import type { TransferLog, Watched } from "./transfer-logs.ts";

/** Records of a page, as many as the API gives. */
const pageSize = 1_000;

/** A token by its names in the index. */
export interface IndexedToken {
  blockchain: string;
  token: string;
}

/** An index that contradicts itself while it is read, such as in doubt about final blocks. */
class IndexInDoubtError extends Error {
  override readonly name = "IndexInDoubtError";
}

/**
 * The chain by the project's own index: of this machine, or over its API. Its final blocks were
 * read twice or proven.
 *
 * It has no events but transfers. So a nonce is looked up at a node, where there is one.
 */
export function createIndexSource(options: {
  service: Pick<TransferService, "getTokenTransfers" | "getTransactionTransfers">;
  /** By the address of the token. */
  tokens: ReadonlyMap<Address, IndexedToken>;
  /** The last block up to which all tokens were verified. */
  verifiedTo: number;
  /** Unix milliseconds: no transfer of interest is older. */
  from: number;
  node: ChainSource | undefined;
}): ChainSource {
  const { service, tokens, verifiedTo, node } = options;
  const histories = new Map<string, ReturnType<typeof createHistory>>();
  let seenMs = options.from;

  /** The history of an account, which goes on where the last range has ended. */
  function historyOf(asset: Address, account: Address) {
    const key = `${asset}/${account}`;
    const token = tokens.get(asset);
    if (token === undefined) return undefined;
    const known =
      histories.get(key) ?? createHistory({ service, token, asset, account, from: seenMs });
    histories.set(key, known);
    return known;
  }

  async function readRange(
    range: { from: number; to: number },
    { assets, to, from }: Watched,
  ): Promise<TransferLog[]> {
    const [recipients, floats] = [new Set(to), new Set(from)];
    /** A transfer from one account to another is found twice. */
    const found = new Map<string, TransferLog>();
    let newestMs = seenMs;
    for (const asset of assets)
      for (const account of new Set([...to, ...from]))
        for (const transfer of (await historyOf(asset, account)?.readTo(range.to)) ?? []) {
          newestMs = Math.max(newestMs, transfer.timestampMs);
          const isWatched = recipients.has(transfer.to) || floats.has(transfer.from);
          if (!isWatched || transfer.blockNumber < range.from) continue;
          found.set(`${transfer.transaction}/${transfer.logIndex}`, transfer);
        }
    // Accounts that are met later have nothing to tell of blocks before.
    seenMs = newestMs;
    return [...found.values()].sort(
      (a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex,
    );
  }

  return {
    kind: "index",
    lastBlock: verifiedTo,
    async *readBlocks(range, watched) {
      const to = Math.min(range.to, verifiedTo);
      if (range.from <= to) yield { transfers: await readRange({ ...range, to }, watched), to };
    },
    readFinalBlock: async () => verifiedTo,
    async readTransaction({ transaction, asset }) {
      const token = tokens.get(asset);
      if (token === undefined) return [];
      const { transfers } = await patiently(() =>
        service.getTransactionTransfers({ ...token, txHash: transaction }),
      ).catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return { transfers: [] };
        throw error;
      });
      return transfers.map((record) => toLog(record, asset));
    },
    readTopics: async (transaction) => node?.readTopics(transaction),
    isBefore: async (transfer, time) => (transfer.timestampMs ?? 0) < time,
  };
}

type TimedLog = TransferLog & { timestampMs: number };

/** Pages of an account's history, the oldest first. */
function createHistory(options: {
  service: Pick<TransferService, "getTokenTransfers">;
  token: IndexedToken;
  asset: Address;
  account: Address;
  from: number;
}) {
  const { service, token, asset, account, from } = options;
  let records: TransferRecord[] = [];
  let cursor: string | undefined;
  let isEnded = false;

  return {
    /** The transfers up to a block that were not read before. */
    async readTo(block: number): Promise<TimedLog[]> {
      const found: TimedLog[] = [];
      for (;;) {
        const count = records.findIndex(({ blockNumber }) => blockNumber > block);
        const taken = records.splice(0, count === -1 ? records.length : count);
        for (const record of taken) {
          if (record.finalized !== true)
            throw new IndexInDoubtError(
              `The index is not sure of block ${record.blockNumber} of ${token.blockchain} any more: check again later.`,
            );
          found.push(toLog(record, asset));
        }
        if (records.length > 0 || isEnded) return found;
        const query = { address: account, fromTs: from, sort: "asc", limit: pageSize } as const;
        const page = await patiently(() =>
          service.getTokenTransfers({ ...token, ...query, cursor }),
        );
        records = page.transfers;
        cursor = page.next;
        isEnded = cursor === undefined;
      }
    },
  };
}

function toLog(record: TransferRecord, asset: Address): TimedLog {
  return {
    asset,
    from: addressOf(record.from),
    to: addressOf(record.to),
    amount: BigInt(record.amount),
    transaction: toLowerHex(hexOf(record.transactionHash)),
    blockNumber: record.blockNumber,
    logIndex: record.logIndex ?? 0,
    timestampMs: record.timestamp,
  };
}

/** Waits where the rate limit of the API is exceeded. */
async function patiently<Result>(action: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await action();
    } catch (error) {
      const seconds = error instanceof ApiError ? error.retryAfterSeconds : undefined;
      if (!(error instanceof ApiError) || error.status !== 429 || seconds === undefined)
        throw error;
      await sleep(systemClock, seconds * 1_000);
    }
  }
}

function addressOf(text: string | null): Address {
  return toLowerHex(hexOf(text ?? `0x${"0".repeat(40)}`));
}

function hexOf(text: string): Hex {
  if (/^0x[0-9a-fA-F]*$/.test(text)) return `0x${text.slice(2)}`;
  throw new IndexInDoubtError(
    `The index names ${JSON.stringify(text.slice(0, 80))} where hex was expected`,
  );
}
