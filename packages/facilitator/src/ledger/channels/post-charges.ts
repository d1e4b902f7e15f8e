import { type Kysely, sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { findNames, type SoldNames } from "../payments/sold-names.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";

const dayMs = 86_400_000;

/** A part of what was charged on a channel, or taken back from it. */
export interface PostedCharge extends ChannelKey {
  /** `undefined` where no route is known. */
  route: string | undefined;
  isReversal: boolean;
  amount: bigint;
}

/**
 * The time of posting, for a statement: the database's clock, but never within a closed period.
 */
export function postingTime({ dialect }: Pick<LedgerContext, "dialect">, db: Kysely<LedgerSchema>) {
  const closed = db.selectFrom("book_periods").select((row) => row.fn.max("closed_to").as("to"));
  const greatest = sql.raw(dialect.engine === "sqlite" ? "max" : "greatest");
  return sql<number>`${greatest}(${dialect.nowMs()}, coalesce((${closed}), 0))`;
}

/**
 * Adds charges to the sums of their channels' days, in the transaction that charges them. The
 * channels' rows must be locked by it: no other transaction writes these sums.
 *
 * @param options.at the time of posting, in Unix milliseconds
 * @returns names of routes; pass them to `rememberSoldNames` once the transaction is committed
 */
export async function postCharges(
  ledger: Pick<LedgerContext, "dialect" | "now" | "soldNames">,
  transaction: Transaction<LedgerSchema>,
  { charges, at }: { charges: readonly PostedCharge[]; at: number },
): Promise<SoldNames> {
  const { dialect } = ledger;
  const names = await findNames({
    names: charges.flatMap(({ route }) => route ?? []),
    ...{ transaction, dialect, known: ledger.soldNames, now: ledger.now() },
  });
  const sums = new Map<string, PostedCharge & { routeId: number; count: bigint }>();
  for (const charge of charges) {
    if (charge.amount <= 0n) continue;
    const routeId = (charge.route === undefined ? undefined : names.get(charge.route)?.id) ?? 0;
    const key = `${charge.network}/${charge.contract}/${charge.channelId}/${routeId}/${charge.isReversal}`;
    const known = sums.get(key);
    const amount = charge.amount + (known?.amount ?? 0n);
    sums.set(key, { ...charge, routeId, amount, count: 1n + (known?.count ?? 0n) });
  }
  await dialect.insertMany<LedgerSchema, "channel_sums">(
    transaction,
    "channel_sums",
    [...sums.values()].map((sum) => ({
      day: Math.floor(at / dayMs),
      route_id: sum.routeId,
      is_reversal: Number(sum.isReversal),
      count: dialect.amount.encode(sum.count),
      amount: dialect.amount.encode(sum.amount),
      ...keyColumns(sum),
    })),
    {
      keys: ["network", "contract", "channel_id", "day", "route_id", "is_reversal"],
      add: ["count", "amount"],
    },
  );
  return names;
}
