import type { ChainOptions } from "../configuration.ts";
import { addTransfers } from "../store/add-transfers.ts";
import { bytesOfHex } from "../store/bytes.ts";
import { updateChain } from "../store/chain-row.ts";
import type { Store } from "../store/open-store.ts";
import { rollBack } from "../store/roll-back.ts";
import { extendWindow } from "../store/window.ts";
import { createTransferBatch } from "../transfer-log/transfer-batch.ts";
import { transferTopic } from "../transfer-log/transfer-topic.ts";

/** The chain of the fixtures. No endpoint serves it. */
export const fixtureChain: ChainOptions = {
  name: "devnet",
  chainId: 9745,
  rpcUrls: ["http://127.0.0.1:1"],
  tokens: [{ name: "usdt", address: `0x${"a1".repeat(20)}`, decimals: 6 }],
};
export const alice = `0x${"11".repeat(20)}` as const;
export const bob = `0x${"22".repeat(20)}` as const;

/** Every table with rows: history, live blocks on top, a reorganisation, an opening and events. */
export async function fillDatabase({ database, tokens }: Store): Promise<void> {
  const { dialect } = database;
  const chainId = fixtureChain.chainId;
  const write = (from: number, amounts: readonly bigint[], isAnnounced: boolean) =>
    database.transaction(async (transaction) => {
      const next = from + amounts.length;
      const logs = amounts.map((amount, index) => transferLog(from + index, amount));
      const batch = createTransferBatch(
        logs,
        { tokens, fromBlock: from, toBlock: next - 1 },
        dialect,
      );
      await addTransfers(transaction, dialect, {
        chainId,
        tokens,
        range: { from, next },
        batch,
        isAnnounced,
      });
      if (!isAnnounced) return;
      const blocks = amounts.map((_, index) => ({
        number: from + index,
        hash: blockHash(from + index),
      }));
      await extendWindow(transaction, chainId, blocks);
    });
  await write(1, [1n, 2n, 3n, 4n, 5n], false);
  await database.transaction((transaction) =>
    extendWindow(transaction, chainId, [{ number: 5, hash: blockHash(5) }]),
  );
  await write(6, [6n, 7n, 8n], true);
  await database.transaction(async (transaction) => {
    await rollBack(transaction, dialect, { chainId, block: 7 });
    const [token] = tokens;
    await transaction
      .insertInto("indexer_openings")
      .values({
        token_id: token?.id ?? 0,
        address: bytesOfHex(alice),
        amount: dialect.amount.encode(1_000n),
      })
      .execute();
    await updateChain(transaction, dialect, {
      chainId,
      news: {
        state: "live",
        problem: null,
        announced_from: 6,
        head: { number: 7, timestampMs: 7_000, finalized: 5 },
        isProgress: true,
      },
    });
  });
}

function blockHash(number: number): `0x${string}` {
  return `0x${number.toString(16).padStart(64, "b")}`;
}

/** A transfer from Alice to Bob, alone in its block. */
function transferLog(number: number, amount: bigint): unknown {
  return {
    address: fixtureChain.tokens[0]?.address,
    topics: [transferTopic, ...[alice, bob].map((each) => `0x${each.slice(2).padStart(64, "0")}`)],
    data: `0x${amount.toString(16).padStart(64, "0")}`,
    blockNumber: `0x${number.toString(16)}`,
    blockHash: blockHash(number),
    transactionHash: `0x${number.toString(16).padStart(64, "c")}`,
    transactionIndex: "0x0",
    logIndex: "0x0",
    blockTimestamp: `0x${number.toString(16)}`,
  };
}
