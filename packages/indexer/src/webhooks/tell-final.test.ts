import { randomUUID } from "node:crypto";
import { createLeases } from "@coinslot/storage";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { updateChain } from "../store/chain-row.ts";
import { coverRange } from "../store/coverage.ts";
import { createWriterLease, type WriterLease } from "../store/writer-lease.ts";
import { engines } from "../testing/engines.ts";
import { chainId, openIndex } from "../testing/index-by-hand.ts";
import { writeAndTell } from "./tell-final.ts";

const sent = 2_300;
const [sqlite] = engines;

it("posts events of finality for any number of transfers, 1,000 in a transaction", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const { database, include, watch } = await openIndex(await sqlite.createUrl());
  const { dialect, kysely } = database;
  await watch();
  const transfers = Array.from({ length: sent }, (_, log) => ({ transaction: `${log}`, log }));
  await include(1, "1", transfers);
  const leases = createLeases({ database });
  const lease = await leases.acquire({ name: "writer", owner: randomUUID(), ttlMs: 60_000 });
  if (lease === undefined) throw new Error("Another process is the writer");
  const writer = createWriterLease(database, { leases, lease });
  const posted: number[] = [];
  const counted: WriterLease = {
    ...writer,
    write: async (work) => {
      const result = await writer.write(work);
      const { rows } = await sql<{ count: number }>`
        select count(*) as count from indexer_outbox_events where type = 'transfer.final'
      `.execute(kysely);
      posted.push(Number(rows[0]?.count));
      return result;
    },
  };

  const result = await writeAndTell({ chainId, database, lease: counted }, async (transaction) => {
    await coverRange(transaction, 1, { from: 1, next: 2 }, "indexer_verified_ranges");
    const head = { number: 1, timestampMs: 1_000, finalized: 1 };
    await updateChain(transaction, dialect, { chainId, news: { head, isProgress: true } });
    return "written";
  });
  expect(result).toBe("written");
  expect(posted).toEqual([1_000, 2_000, sent]);
});
