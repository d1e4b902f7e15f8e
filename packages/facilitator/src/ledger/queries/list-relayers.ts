import type { Address, Network } from "@coinslot/protocol";
import { sql } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { inSnapshot } from "../ledger-reads.ts";
import { isAlive } from "../maintenance/living-processes.ts";
import { readProcessRelayers } from "../maintenance/process-relayers.ts";
import { relayerLeases, relayerOfLease } from "../relayer-lease.ts";
import { is } from "../states.ts";

/**
 * - `active`: a living process plans for it.
 * - `retiring`: a living process has its key, and none plans for it.
 * - `keyless`: no living process has its key, and its transactions are open.
 * - `retired`: no living process has its key, and nothing is open.
 */
export type RelayerState = "active" | "retiring" | "keyless" | "retired";

/** A relayer that the ledger knows. */
export interface RelayerStanding {
  network: Network;
  relayer: Address;
  state: RelayerState;
  /** Number of its transactions that no block holds yet, or not as deep as `serveAfter` asks. */
  inFlight: number;
}

/**
 * A process whose last heartbeat is this old counts as dead here. A reader does not know the
 * sellers' `heartbeatLeaseSeconds`; they send five heartbeats in that time.
 */
const heartbeatLeaseMs = 30_000;

/** Every relayer that a process has, or ever had, by network and address. */
export function listRelayers(reads: LedgerReads): Promise<RelayerStanding[]> {
  return inSnapshot(reads, async ({ db, dialect }) => {
    const processes = await db
      .selectFrom("processes")
      .select(["id", "relayers"])
      .where(isAlive({ dialect, heartbeatLeaseMs }))
      .execute();
    const { rows: leases } = await sql<{ name: string; owner: string; is_held: number }>`
      select name, owner, case when expires_at_ms > ${dialect.nowMs()} then 1 else 0 end as is_held
      from coinslot_leases where substr(name, 1, ${sql.lit(relayerLeases.length)}) = ${relayerLeases}
    `.execute(db);
    const open = await db
      .selectFrom("transactions")
      .select(["network", "relayer", (select) => select.fn.countAll<number>().as("count")])
      .where("state", "=", is("open"))
      .groupBy(["network", "relayer"])
      .execute();

    const standings = new Map<string, RelayerStanding>();
    function standingOf(network: Network, relayer: Address): RelayerStanding {
      const key = `${network}:${relayer}`;
      const known = standings.get(key) ?? { network, relayer, state: "retired", inFlight: 0 };
      standings.set(key, known);
      return known;
    }
    for (const { network, relayer, count } of open) {
      Object.assign(standingOf(network, relayer), { state: "keyless", inFlight: Number(count) });
    }
    const named = processes.flatMap(({ relayers }) => readProcessRelayers(relayers));
    // Last what counts most: one process that plans for it makes it active.
    for (const { network, relayer, isRetiring } of named) {
      if (isRetiring) standingOf(network, relayer).state = "retiring";
    }
    for (const { network, relayer, isRetiring } of named) {
      if (!isRetiring) standingOf(network, relayer).state = "active";
    }
    const older = new Set(processes.flatMap(({ id, relayers }) => (relayers === null ? [id] : [])));
    for (const { name, owner, is_held: isHeld } of leases) {
      const leased = relayerOfLease(name);
      if (leased === undefined) continue;
      const standing = standingOf(leased.network, leased.relayer);
      if (isHeld === 1 && older.has(owner)) standing.state = "active";
    }
    return [...standings.values()].sort((a, b) =>
      a.network === b.network ? (a.relayer < b.relayer ? -1 : 1) : a.network < b.network ? -1 : 1,
    );
  });
}
