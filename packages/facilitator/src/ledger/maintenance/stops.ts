import type { Address } from "@coinslot/protocol";
import type { Writer } from "@coinslot/storage";
import {
  type Stop,
  type StopChange,
  type StopReport,
  type StopTarget,
  stopTargetSchema,
} from "../../stops/stop.ts";
import type { LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { runsOlderProgram } from "./processes.ts";

/** The part of a ledger that changes its stop switches. */
export interface StopWrites extends LedgerReads {
  write: Writer<LedgerSchema>["write"];
  notify(channel: string, payload: string): Promise<void>;
}

/** Notifications of changed switches. */
export const stopChannel = "coinslot_stops";

/** The switches that are set, without those of kinds that only a newer release knows. */
export async function readStops({ db }: LedgerReads): Promise<Stop[]> {
  const rows = await db.selectFrom("stops").selectAll().orderBy("kind").orderBy("name").execute();
  return rows.flatMap(({ kind, name, reason, stopped_at: stoppedAt }) => {
    const target = stopTargetSchema.safeParse({ kind, name });
    return target.success ? [{ ...target.data, reason, stoppedAt }] : [];
  });
}

/**
 * Sets or clears one switch, and notifies all processes of the ledger. Setting it again changes the
 * reason, clearing it again nothing. Two callers race for one row, and the last one wins.
 */
export async function changeStop(ledger: StopWrites, change: StopChange): Promise<StopReport> {
  const { write, dialect, db } = ledger;
  const { kind, name } = change.target;
  await write(async (transaction) => {
    if (change.operation === "clear") {
      await transaction
        .deleteFrom("stops")
        .where("kind", "=", kind)
        .where("name", "=", name)
        .execute();
      return;
    }
    const { reason } = change;
    await transaction
      .insertInto("stops")
      .values({ kind, name, reason, stopped_at: dialect.nowMs() })
      .onConflict((conflict) => conflict.columns(["kind", "name"]).doUpdateSet({ reason }))
      .execute();
  });
  // A hint: each process reads the switches with its heartbeat, too.
  await ledger.notify(stopChannel, "").catch(() => undefined);
  return {
    stops: await readStops(ledger),
    isKnown: await isKnown(db, change.target),
    runsOlderProgram: await runsOlderProgram(ledger),
  };
}

/**
 * Whether new refunds from a float are stopped. Read in the transaction that queues a refund: no
 * process has to have heard of the switch before it obeys.
 */
export async function isFloatStopped(db: LedgerReads["db"], float: Address): Promise<boolean> {
  const row = await db
    .selectFrom("stops")
    .select("name")
    .where("kind", "=", "float" satisfies StopTarget["kind"])
    .where("name", "=", float)
    .executeTakeFirst();
  return row !== undefined;
}

async function isKnown(db: StopWrites["db"], target: StopTarget): Promise<boolean> {
  switch (target.kind) {
    case "network":
      return exists(db.selectFrom("chains").select("network").where("network", "=", target.name));
    case "route":
      return exists(selectSoldRoute(db, target.name));
    case "float":
      return exists(
        db.selectFrom("refunds").select("id").where("float", "=", target.name).limit(1),
      );
  }
}

async function exists(query: { executeTakeFirst(): Promise<unknown> }): Promise<boolean> {
  return (await query.executeTakeFirst()) !== undefined;
}

/** `sold_names` has resources and recipients, too. A route is one that an ended payment has. */
function selectSoldRoute(db: StopWrites["db"], name: string) {
  return db
    .selectFrom("sold_names")
    .select("id")
    .where("name", "=", name)
    .where(({ or, exists, selectFrom }) =>
      or([
        exists(
          selectFrom("payment_sums")
            .select("route_id")
            .whereRef("payment_sums.route_id", "=", "sold_names.id"),
        ),
        exists(
          selectFrom("payment_changes")
            .select("route_id")
            .whereRef("payment_changes.route_id", "=", "sold_names.id"),
        ),
      ]),
    );
}
