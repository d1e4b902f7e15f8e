import { randomUUID } from "node:crypto";
import { createLeases, migrate, openDatabase, registerEndpoints } from "@coinslot/storage";
import { sql } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { addTransfers } from "../store/add-transfers.ts";
import { bytesOfHex } from "../store/bytes.ts";
import { addChain, updateChain } from "../store/chain-row.ts";
import { coverRange } from "../store/coverage.ts";
import { indexerMigrations } from "../store/migrations/indexer-migrations.ts";
import { logsPerBlock } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { createWriterLease, type WriterLease } from "../store/writer-lease.ts";
import { engines } from "../testing/engines.ts";
import { indexerOutbox } from "./indexer-outbox.ts";
import { writeAndTell } from "./tell-final.ts";
import { changeWatched } from "./watched-addresses.ts";

const chainId = 31_337;
const watched = `0x${"11".repeat(20)}` as const;
const usdt = `0x${"aa".repeat(20)}` as const;
const block = { hash: `0x${"01".repeat(32)}`, timestampMs: 1_000 };
const range = { from: 1, next: 2 };
const sent = 2_300;
const [sqlite] = engines;

it("tells the finality of any number of transfers by 1,000 in a transaction", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const url = await sqlite.createUrl();
  const database = await openDatabase<IndexerSchema>({ url, durable: false });
  onTestFinished(() => database.close());
  await migrate(database, indexerMigrations);
  const { dialect, kysely } = database;
  await addChain(database, { chainId, name: "devnet" });
  await sql`
    insert into indexer_tokens (chain_id, address, name, opens_at_zero, revision)
    values (${chainId}, ${bytesOfHex(usdt)}, 'usdt', 1, 0)
  `.execute(kysely);
  const outbox = indexerOutbox(database);
  const types = ["transfer.final"];
  await registerEndpoints(outbox, [{ id: "whk_a", url: "https://a.example", secrets: [], types }]);
  await changeWatched(outbox, { endpoint: "whk_a", add: [watched] });
  const token = {
    blockchain: "devnet",
    token: "usdt",
    id: 1,
    chainId,
    address: usdt,
    startBlock: 0,
  };
  const rows = Array.from({ length: sent }, (_, log) => ({
    token_id: 1,
    position: logsPerBlock + log,
    transaction_index: 0,
    transfer_index: log,
    transaction_hash: bytesOfHex(`0x${"02".repeat(32)}`),
    from_address: bytesOfHex(usdt),
    to_address: bytesOfHex(watched),
    amount: dialect.amount.encode(5n),
  }));
  const blocks = new Map([[1, block]]);
  const batch = { rows, blocks, gains: new Map(), last: undefined, oddities: [], faults: [] };
  await database.transaction((transaction) =>
    addTransfers(transaction, dialect, {
      chainId,
      tokens: [token],
      range,
      batch,
      isAnnounced: true,
    }),
  );
  const leases = createLeases({ database });
  const lease = await leases.acquire({ name: "writer", owner: randomUUID(), ttlMs: 60_000 });
  if (lease === undefined) throw new Error("Another process is the writer");
  const writer = createWriterLease(database, { leases, lease });
  const told: number[] = [];
  const counted: WriterLease = {
    ...writer,
    write: async (work) => {
      const result = await writer.write(work);
      const { rows } = await sql<{ count: number }>`
        select count(*) as count from indexer_outbox_events where type = 'transfer.final'
      `.execute(kysely);
      told.push(Number(rows[0]?.count));
      return result;
    },
  };

  const result = await writeAndTell({ chainId, database, lease: counted }, async (transaction) => {
    await coverRange(transaction, 1, range, "indexer_verified_ranges");
    const head = { number: 1, timestampMs: 1_000, finalized: 1 };
    await updateChain(transaction, dialect, { chainId, news: { head, isProgress: true } });
    return "written";
  });
  expect(result).toBe("written");
  expect(told).toEqual([1_000, 2_000, sent]);
});
