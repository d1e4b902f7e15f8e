import type { Network } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { createSortableId } from "../sortable-id.ts";

/** Gas that one caller may have at stake on a network. */
export interface GasLimit {
  network: Network;
  caller: string;
  perHour: bigint;
}

const hourMs = 3_600_000;

/** Gas of a transaction. */
export interface TakenGas {
  gas: bigint;
  /** A deposit or a refund: buyers ask for those, and must leave half for claims. */
  isByBuyer: boolean;
}

/**
 * Reads whether a caller's share has room, and takes nothing: before a trial, which costs a node's
 * work.
 *
 * @returns milliseconds until enough of it is free; `undefined`: it is
 */
export async function findGasLimit(
  { db, now }: LedgerReads & Pick<LedgerContext, "now">,
  { network, caller, perHour }: GasLimit,
  wanted: TakenGas,
): Promise<number | undefined> {
  const time = now();
  const rows = await db
    .selectFrom("caller_gas")
    .select(["gas", "created_at", "by_buyer"])
    .where("network", "=", network)
    .where("caller", "=", caller)
    .where("created_at", ">", time - hourMs)
    // Of far ahead: the clock that wrote it was put back since.
    .where("created_at", "<", time + hourMs)
    .orderBy("created_at")
    .execute();
  const freeAt = findFree(rows, { perHour, ...wanted });
  return freeAt === undefined ? undefined : Math.max(1, freeAt + hourMs - time);
}

/**
 * Takes gas of a caller's share before a transaction of it. The sum of all gas limits of the last
 * hour stays within the share. The sum of those that buyers cause stays within half of it. One call
 * alone always passes.
 *
 * The racer is another process that takes of the same share: both may pass the limit by one call. A
 * process that dies before its transaction leaves the row, which counts for an hour.
 *
 * @returns the row's id, for `giveGasBack`; or milliseconds until enough of it is free again
 */
export function takeGas(
  ledger: LedgerContext,
  limit: GasLimit,
  wanted: TakenGas,
): Promise<{ id: string } | { limitedMs: number }> {
  return ledger.write((transaction) => takeGasWith(ledger, transaction, { ...limit, ...wanted }));
}

/**
 * Takes gas of a caller's share in the transaction of the row that needs it: one has both, or none.
 */
export async function takeGasWith(
  ledger: Pick<LedgerContext, "now" | "dialect">,
  transaction: Transaction<LedgerSchema>,
  { network, caller, perHour, ...wanted }: GasLimit & TakenGas,
): Promise<{ id: string } | { limitedMs: number }> {
  const now = ledger.now();
  const reads = { db: transaction, dialect: ledger.dialect, now: () => now };
  const limitedMs = await findGasLimit(reads, { network, caller, perHour }, wanted);
  if (limitedMs !== undefined) return { limitedMs };
  return { id: await countGas(ledger, transaction, { network, caller, ...wanted }) };
}

/** Counts gas of a caller's share, once `findGasLimit` has found room for it. */
export async function countGas(
  ledger: Pick<LedgerContext, "now">,
  transaction: Transaction<LedgerSchema>,
  { network, caller, gas, isByBuyer }: Omit<GasLimit, "perHour"> & TakenGas,
): Promise<string> {
  const now = ledger.now();
  const id = createSortableId(now);
  const by_buyer = isByBuyer ? 1 : 0;
  await transaction
    .insertInto("caller_gas")
    .values({ id, network, caller, gas: Number(gas), created_at: now, by_buyer })
    .execute();
  return id;
}

/** The time of the row whose end makes room; `undefined`: there is room. The oldest rows first. */
function findFree(
  rows: readonly { gas: number; created_at: number; by_buyer: number }[],
  { perHour, gas, isByBuyer }: Pick<GasLimit, "perHour"> & TakenGas,
): number | undefined {
  let all = gas;
  let byBuyers = isByBuyer ? gas : 0n;
  for (const row of rows) {
    all += BigInt(row.gas);
    if (row.by_buyer === 1) byBuyers += BigInt(row.gas);
  }
  const hasRoom = () => all <= perHour && (!isByBuyer || byBuyers <= perHour / 2n);
  let freeAt: number | undefined;
  for (const row of rows) {
    if (hasRoom()) return freeAt;
    all -= BigInt(row.gas);
    if (row.by_buyer === 1) byBuyers -= BigInt(row.gas);
    freeAt = row.created_at;
  }
  return freeAt;
}

/** Gives gas back that no transaction uses. */
export async function giveGasBack(ledger: LedgerContext, id: string): Promise<void> {
  await ledger.write(
    (transaction) => transaction.deleteFrom("caller_gas").where("id", "=", id).execute(),
    forProcess,
  );
}

/** Deletes rows that no longer count. */
export async function forgetGas(
  ledger: LedgerContext,
  { network }: { network: Network },
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .deleteFrom("caller_gas")
        .where("network", "=", network)
        // A clock that is ahead forgets none of another process's hour.
        .where("created_at", "<", ledger.now() - 24 * hourMs)
        .execute(),
    forProcess,
  );
}
