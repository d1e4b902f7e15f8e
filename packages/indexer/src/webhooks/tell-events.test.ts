import { migrate, openDatabase, registerEndpoints } from "@coinslot/storage";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { addTransfers } from "../store/add-transfers.ts";
import { bytesOfHex } from "../store/bytes.ts";
import { addChain, updateChain } from "../store/chain-row.ts";
import { updateChecks } from "../store/checks.ts";
import { coverRange } from "../store/coverage.ts";
import { forgetEvents } from "../store/events.ts";
import { forgetRange } from "../store/forget-range.ts";
import type { KnownToken } from "../store/known-token.ts";
import { mendBlock } from "../store/mend-block.ts";
import { indexerMigrations } from "../store/migrations/indexer-migrations.ts";
import { logsPerBlock } from "../store/position.ts";
import { rollBack } from "../store/roll-back.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { engines } from "../testing/engines.ts";
import type { TransferBatch } from "../transfer-log/transfer-batch.ts";
import { indexerOutbox } from "./indexer-outbox.ts";
import { tellEvents } from "./tell-events.ts";
import { tellFinal } from "./tell-final.ts";
import { changeWatched } from "./watched-addresses.ts";

const chainId = 31_337;
const usdt = `0x${"aa".repeat(20)}` as const;
const [watched, other, stranger] = ["11", "22", "33"].map(
  (byte): `0x${string}` => `0x${byte.repeat(20)}`,
) as [`0x${string}`, `0x${string}`, `0x${string}`];
const hashOf = (name: string) => `0x${Buffer.from(name).toString("hex").padEnd(64, "0")}`;

type Sent = { transaction: string; to?: `0x${string}`; from?: `0x${string}`; log?: number };

describe.each(engines)("what receivers are told, on $engine", ({ createUrl }) => {
  /** An index by hand: the writer's statements, without a chain. */
  async function openIndex({
    types = ["transfer.included", "transfer.final", "transfer.reverted"],
  } = {}) {
    const database = await openDatabase<IndexerSchema>({ url: await createUrl(), durable: false });
    onTestFinished(() => database.close());
    await migrate(database, indexerMigrations);
    const { dialect, kysely } = database;
    await addChain(database, { chainId, name: "devnet" });
    await sql`
      insert into indexer_tokens (chain_id, address, name, opens_at_zero, revision)
      values (${chainId}, ${bytesOfHex(usdt)}, 'usdt', 1, 0)
    `.execute(kysely);
    const token: KnownToken = {
      blockchain: "devnet",
      token: "usdt",
      id: 1,
      chainId,
      address: usdt,
      startBlock: 0,
    };
    const outbox = indexerOutbox(database);
    const receiver = (id: string) => ({ id, url: "https://example.com", secrets: [], types });
    await registerEndpoints(outbox, [receiver("whk_a"), receiver("whk_b")]);

    const batchOf = (number: number, block: string, transfers: readonly Sent[]): TransferBatch => ({
      rows: transfers.map(({ transaction, to = watched, from = stranger, log = 0 }) => ({
        token_id: 1,
        position: number * logsPerBlock + log,
        transaction_index: 0,
        transfer_index: 0,
        transaction_hash: bytesOfHex(hashOf(transaction)),
        from_address: bytesOfHex(from),
        to_address: bytesOfHex(to),
        amount: dialect.amount.encode(5n),
      })),
      blocks: new Map([[number, { hash: hashOf(block), timestampMs: 1_000 }]]),
      gains: new Map(),
      last: undefined,
      oddities: [],
      faults: [],
    });
    const range = (number: number) => ({ from: number, next: number + 1 });
    return {
      database,
      outbox,
      include: (number: number, block: string, transfers: readonly Sent[], isAnnounced = true) =>
        database.transaction((tx) =>
          addTransfers(tx, dialect, {
            chainId,
            tokens: [token],
            range: range(number),
            batch: batchOf(number, block, transfers),
            isAnnounced,
          }),
        ),
      rollBackTo: (block: number) =>
        database.transaction((tx) => rollBack(tx, dialect, { chainId, block })),
      mend: (number: number, block: string, transfers: readonly Sent[]) =>
        database.transaction((tx) =>
          mendBlock(tx, dialect, {
            chainId,
            tokens: [token],
            block: { number, hash: hashOf(block), timestampMs: 1_000 },
            truth: batchOf(number, block, transfers),
            isAnnounced: true,
            sums: new Map(),
          }),
        ),
      forget: (number: number) =>
        database.transaction((tx) =>
          forgetRange(tx, dialect, { chainId, tokenIds: [1], range: range(number) }),
        ),
      finalise: (number: number) =>
        database.transaction(async (tx) => {
          const head = { number, timestampMs: 1_000, finalized: number };
          await updateChain(tx, dialect, { chainId, news: { head, isProgress: true } });
          await tellFinal(tx, dialect, chainId);
        }),
      verify: (number: number) =>
        database.transaction(async (tx) => {
          await coverRange(tx, 1, range(number), "indexer_verified_ranges");
          await tellFinal(tx, dialect, chainId);
        }),
      doubt: (from: number | null) =>
        database.transaction(async (tx) => {
          await updateChecks(tx, dialect, { chainId, news: { doubted_from: from } });
          await tellFinal(tx, dialect, chainId);
        }),
      watch: (endpoint = "whk_a", addresses = [watched]) =>
        changeWatched(outbox, { endpoint, add: addresses }),
      /** Events in their order, as `type transaction block`. */
      async told(endpoint = "whk_a"): Promise<string[]> {
        const { rows } = await sql<{ type: string; payload: string }>`
          select type, payload from indexer_outbox_deliveries as delivery
          join indexer_outbox_events as event on event.seq = delivery.event_seq
          where endpoint_id = ${endpoint} order by event.seq
        `.execute(kysely);
        return rows.map(({ type, payload }) => {
          const { transactionHash, blockHash } = JSON.parse(payload);
          const nameOf = (hash: string) =>
            Buffer.from(hash.slice(2), "hex").toString().replaceAll("\0", "");
          return `${type.replace("transfer.", "")} ${nameOf(transactionHash)} ${nameOf(blockHash)}`;
        });
      },
    };
  }

  it("is their own addresses alone, each transfer once, by sender or recipient", async () => {
    const index = await openIndex();
    await index.watch("whk_a", [watched, other]);
    await index.watch("whk_b", [other]);
    await index.include(1, "1", [
      { transaction: "a" },
      { transaction: "b", from: watched, to: other, log: 1 },
      { transaction: "c", to: stranger, log: 2 },
      { transaction: "d", from: watched, to: watched, log: 3 },
    ]);
    expect(await index.told()).toEqual(["included a 1", "included b 1", "included d 1"]);
    expect(await index.told("whk_b")).toEqual(["included b 1"]);
  });

  it("is final only where its block is verified, final and not doubted", async () => {
    const index = await openIndex();
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.include(2, "2", [{ transaction: "b" }]);
    await index.finalise(2);
    expect(await index.told()).toHaveLength(2);
    await index.doubt(2);
    await index.verify(1);
    await index.verify(2);
    expect((await index.told()).slice(2)).toEqual(["final a 1"]);
    await index.doubt(null);
    await index.finalise(2);
    expect((await index.told()).slice(2)).toEqual(["final a 1", "final b 2"]);
  });

  it("is taken back with its block, also a final one, and told again in the next", async () => {
    const index = await openIndex();
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.verify(1);
    await index.finalise(1);
    await index.rollBackTo(0);
    await index.include(1, "other", [{ transaction: "a" }]);
    expect(await index.told()).toEqual([
      "included a 1",
      "final a 1",
      "reverted a 1",
      "included a other",
    ]);
  });

  it("follows a repair of a block", async () => {
    const index = await openIndex();
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }, { transaction: "b", log: 1 }]);
    await index.mend(1, "1", [
      { transaction: "b", log: 1 },
      { transaction: "c", log: 2 },
    ]);
    await index.verify(1);
    await index.finalise(1);
    const told = await index.told();
    expect(told.filter((each) => each.includes(" a "))).toEqual(["included a 1", "reverted a 1"]);
    expect(told.filter((each) => each.includes(" c "))).toEqual(["included c 1", "final c 1"]);
    expect(told.filter((each) => each.includes(" b ")).at(-1)).toBe("final b 1");
  });

  it("is not repeated by a reindex, and is taken back where that has not found it again", async () => {
    const index = await openIndex();
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }, { transaction: "b", log: 1 }]);
    await index.forget(1);
    await index.finalise(1);
    expect(await index.told()).toEqual(["included a 1", "included b 1"]);
    await index.include(1, "1", [{ transaction: "b", log: 1 }], false);
    await index.verify(1);
    expect((await index.told()).slice(2).sort()).toEqual(["final b 1", "reverted a 1"]);
  });

  it("begins with the first block after an address is watched, and ends with what was told", async () => {
    const index = await openIndex();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.watch();
    await index.include(2, "2", [{ transaction: "b" }]);
    await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
    await index.include(3, "3", [{ transaction: "c" }]);
    await index.rollBackTo(1);
    expect(await index.told()).toEqual(["included b 2", "reverted b 2"]);
    // Watched anew: what came in between is not told.
    await index.include(2, "4", [{ transaction: "d" }]);
    await index.watch();
    await index.include(3, "5", [{ transaction: "e" }]);
    expect((await index.told()).slice(2)).toEqual(["included e 5"]);
  });

  it("includes the blocks of a writer of the release before, once one of this release writes", async () => {
    const index = await openIndex();
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    // That writer knows of no receivers: its events alone are written.
    const { database } = index;
    await sql`
      insert into indexer_events (kind, token_id, position, transaction_index, transfer_index,
        transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms)
      select 'retraction', token_id, position, transaction_index, transfer_index,
        transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms
      from indexer_events
    `.execute(database.kysely);
    expect(await index.told()).toEqual(["included a 1"]);
    await database.transaction((tx) => tellEvents(tx, database.dialect));
    expect(await index.told()).toEqual(["included a 1", "reverted a 1"]);
    await database.transaction((tx) => forgetEvents(tx, database.dialect));
    await index.include(2, "2", [{ transaction: "b" }]);
    expect((await index.told()).slice(2)).toEqual(["included b 2"]);
  });

  it("leaves out types that a receiver does not want", async () => {
    const index = await openIndex({ types: ["transfer.final"] });
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.verify(1);
    await index.finalise(1);
    expect(await index.told()).toEqual(["final a 1"]);
  });
});
