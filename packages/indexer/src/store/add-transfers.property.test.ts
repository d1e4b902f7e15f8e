import type { Database } from "@coinslot/storage";
import * as fc from "fast-check";
import { maxUint256, zeroAddress } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { readConfiguration } from "../configuration.ts";
import { silentLogger } from "../logger.ts";
import { selectIndexedTransfers } from "../query/indexed-transfers.ts";
import { engines } from "../testing/engines.ts";
import { createTransferBatch } from "../transfer-log/transfer-batch.ts";
import { transferTopic } from "../transfer-log/transfer-topic.ts";
import { addTransfers } from "./add-transfers.ts";
import { hexOfBytes } from "./bytes.ts";
import { createLazyStore } from "./open-store.ts";
import { positionOf } from "./position.ts";
import { rollBack } from "./roll-back.ts";
import type { IndexerSchema } from "./schema.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

interface Move {
  token: number;
  from: string;
  to: string;
  amount: bigint;
}

const tokenAddresses = [`0x${"a1".repeat(20)}`, `0x${"b2".repeat(20)}`] as const;
const someone = fc.constantFrom(
  zeroAddress,
  `0x${"ff".repeat(20)}`,
  `0x${"00".repeat(19)}01`,
  `0x${"1c".repeat(20)}`,
);
const move: fc.Arbitrary<Move> = fc.record({
  token: fc.nat({ max: 1 }),
  from: someone,
  to: someone,
  amount: fc.oneof(
    fc.constantFrom(0n, 1n, 9_999n, 10_000n, maxUint256 - 1n, maxUint256),
    fc.bigInt({ min: 0n, max: maxUint256 }),
  ),
});
const range = fc.record({
  blocks: fc.array(fc.array(move, { maxLength: 4 }), { minLength: 1, maxLength: 4 }),
  // This many copies, since many rows take another code path than few.
  times: fc.constantFrom(1, 1, 90),
});
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("add" as const), range }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("fail" as const), range }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("repeat" as const), range }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("undo" as const), depth: fc.nat(6) }) },
);

describe.each(engines)("ranges that are added, refused and rolled back, on $engine", (engine) => {
  it("leave the canonical rows, and balances that are their sums modulo 2^256", async () => {
    const store = createLazyStore({
      url: await engine.createUrl(),
      chains: readConfiguration({
        chains: [
          devnetChain({
            rpcUrls: ["http://127.0.0.1:1"],
            tokens: tokenAddresses.map((address, index) => ({
              name: `token${index}`,
              address,
              decimals: 6,
            })),
          }),
        ],
      }).chains,
      logger: silentLogger,
      onEvents: () => {},
    });
    onTestFinished(() => store.close());
    const { database, tokens } = await store.opened();
    const { dialect } = database;
    const chainId = tokens[0]?.chainId ?? 0;

    async function add(
      from: number,
      blocks: readonly (readonly Move[])[],
      beforeCommit = () => {},
    ): Promise<void> {
      const next = from + blocks.length;
      const logs = blocks.flatMap((moves, index) => logsOf(from + index, moves));
      const place = { tokens, fromBlock: from, toBlock: next - 1 };
      const batch = createTransferBatch(logs, place, dialect);
      expect([...batch.oddities, ...batch.faults]).toEqual([]);
      const what = { chainId, tokens, range: { from, next }, batch, isAnnounced: true };
      await database.transaction(async (tx) => {
        await addTransfers(tx, dialect, what);
        beforeCommit();
      });
    }

    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        await database.transaction((tx) => rollBack(tx, dialect, { chainId, block: -1 }));
        const chain: (readonly Move[])[] = [];
        for (const current of steps) {
          if (current.kind === "undo") {
            chain.length = Math.max(0, chain.length - current.depth);
            const block = chain.length - 1;
            await database.transaction((tx) => rollBack(tx, dialect, { chainId, block }));
            continue;
          }
          const { times } = current.range;
          const blocks = current.range.blocks.map((moves) => Array(times).fill(moves).flat());
          if (current.kind === "add") {
            await add(chain.length, blocks);
            chain.push(...blocks);
          } else if (current.kind === "fail") {
            const adding = add(chain.length, blocks, () => {
              throw new Error("the end of the process");
            });
            await expect(adding).rejects.toThrow("the end of the process");
          } else if (chain.some((moves) => moves.length > 0)) {
            // A range that was written, although its commit's acknowledgement was lost.
            await expect(add(0, [...chain])).rejects.toMatchObject({ kind: "unique-violation" });
          }
        }
        expect(await readRows()).toEqual(rowsOf(chain));
        expect(await readBalances(database)).toEqual(balancesOf(chain));
      }),
      { numRuns: 25 },
    );

    async function readRows() {
      const ofTokens = tokens.map(async (token) => {
        const rows = await selectIndexedTransfers(database, token)
          .orderBy("transfer.position")
          .execute();
        return rows.map((row) => ({
          token: token.id,
          position: row.position,
          from: hexOfBytes(row.from_address),
          to: hexOfBytes(row.to_address),
          amount: dialect.amount.decode(row.amount),
        }));
      });
      return (await Promise.all(ofTokens)).flat();
    }

    function rowsOf(chain: readonly (readonly Move[])[]) {
      return tokens.flatMap(({ id, address }) =>
        chain.flatMap((moves, block) =>
          moves.flatMap(({ token, from, to, amount }, index) =>
            tokenAddresses[token] === address
              ? { token: id, position: positionOf(block, index), from, to, amount }
              : [],
          ),
        ),
      );
    }

    function balancesOf(chain: readonly (readonly Move[])[]) {
      const balances = new Map<string, bigint>();
      for (const { token, from, to, amount } of rowsOf(chain)) {
        const change = (address: string, by: bigint) => {
          const key = `${token} ${address}`;
          balances.set(key, wrapUint256((balances.get(key) ?? 0n) + by));
        };
        change(from, -amount);
        change(to, amount);
      }
      return new Map([...balances].filter(([, amount]) => amount !== 0n).sort());
    }
  });
});

/** As a node would answer. */
function logsOf(block: number, moves: readonly Move[]) {
  return moves.map(({ token, from, to, amount }, index) => ({
    address: tokenAddresses[token],
    blockNumber: hex(block),
    blockHash: word(BigInt(block)),
    blockTimestamp: hex(block),
    transactionHash: word(BigInt(positionOf(block, index))),
    transactionIndex: hex(index),
    logIndex: hex(index),
    topics: [transferTopic, word(BigInt(from)), word(BigInt(to))],
    data: word(amount),
  }));
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}

function word(value: bigint): string {
  return `0x${value.toString(16).padStart(64, "0")}`;
}

async function readBalances({ kysely, dialect }: Database<IndexerSchema>) {
  const rows = await kysely.selectFrom("indexer_balances").selectAll().execute();
  return new Map(
    rows
      .map((row): [string, bigint] => [
        `${row.token_id} ${hexOfBytes(row.address)}`,
        dialect.amount.decode(row.amount),
      ])
      .filter(([, amount]) => amount !== 0n)
      .sort(),
  );
}
