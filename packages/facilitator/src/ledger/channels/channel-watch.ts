import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { sql } from "kysely";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import type { ChannelContract } from "./channel-state.ts";

/** Position on the chain: everything up to `block` stands in the mirrors. */
export interface ChannelWatch {
  /** `time` in Unix seconds. */
  block: { number: number; hash: Hex; time: number };
  /** Events are known without a gap from this block on. An older mirror must be read anew. */
  since: number;
  /** By the database's clock, in Unix milliseconds. */
  seenAt: number;
  /** Time since then, by the database's clock. */
  ageMs: number;
}

export async function readWatch(
  { db, dialect }: LedgerReads,
  { network, contract }: ChannelContract,
): Promise<ChannelWatch | undefined> {
  const row = await db
    .selectFrom("channel_watches")
    .selectAll()
    .select(dialect.nowMs().as("now_ms"))
    .where("network", "=", network)
    .where("contract", "=", contract)
    .executeTakeFirst();
  return (
    row && {
      block: { number: row.block_number, hash: row.block_hash, time: row.block_time },
      since: row.since_number,
      seenAt: row.seen_at,
      ageMs: Number(row.now_ms) - row.seen_at,
    }
  );
}

/**
 * Records a block up to which all mirrors are written. The racer is a watcher that lost its lease:
 * the guard refuses it.
 *
 * @returns whether it was recorded
 */
export function recordWatch(
  ledger: LedgerContext,
  lease: Lease,
  { network, contract, block, since }: ChannelContract & Pick<ChannelWatch, "block" | "since">,
): Promise<boolean> {
  const { dialect, leases } = ledger;
  return ledger.write(async (transaction) => {
    const { numAffectedRows } = await sql`
      insert into channel_watches (network, contract, block_number, block_hash, block_time,
        since_number, seen_at)
      select ${network}, ${contract}, cast(${block.number} as bigint), ${block.hash},
        cast(${block.time} as bigint), cast(${since} as bigint), ${dialect.nowMs()}
      where ${leases.guard(lease)}
      on conflict (network, contract) do update set block_number = excluded.block_number,
        block_hash = excluded.block_hash, block_time = excluded.block_time,
        since_number = excluded.since_number, seen_at = excluded.seen_at
    `.execute(transaction);
    return numAffectedRows === 1n;
  }, forProcess);
}
