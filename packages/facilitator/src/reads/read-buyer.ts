import type { Address, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import { hexToBytes } from "viem";
import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { sumMoney } from "./routes-operation.ts";
import { moneySchema, toIso } from "./wire-forms.ts";

/** Payments that are counted of one buyer, at most. */
const maxCounted = 1_000;
const maxRefunds = 1_000;

/** A payer in JSON. */
export const buyerSchema = z.object({
  address: z.string(),
  /** Payments of any state. */
  payments: z.number(),
  /** Confirmed ones. */
  sales: z.number(),
  /** Sum of the confirmed ones, by token. */
  total: z.array(moneySchema),
  /** Refunds that are not void, and their sum. */
  refunds: z.number(),
  refunded: z.array(moneySchema),
  lastPaymentAt: z.string().nullable(),
  /** It was a contract, or an account with code, when it paid. */
  hasCode: z.boolean(),
  /** It has burnt our gas, and is refused until then. */
  refusedUntil: z.string().nullable(),
  /** It has more than 1,000 payments: counts and sums are of 1,000 of them, and at least these. */
  isPartial: z.boolean(),
});

/** A payer in JSON. */
export type Buyer = z.infer<typeof buyerSchema>;

interface Group {
  network: Network;
  asset: Address;
  state: string;
  count: number;
  amount: bigint;
  last: number;
  isAlone: boolean;
}

/** One payer, as the ledger knows it. */
export async function readBuyer(reads: LedgerReads, address: Address): Promise<Buyer> {
  const current = await readCurrent(reads, address);
  const archived = await readArchived(reads, address);
  const groups = [...current, ...archived];
  const count = (list: readonly Group[]) => list.reduce((sum, each) => sum + each.count, 0);
  const sold = groups.filter(({ state }) => state === "confirmed");
  const refunds = await readRefunds(reads, address);
  const last = Math.max(...groups.map((each) => each.last));
  const code = await readCode(reads, address);
  return {
    address,
    payments: count(groups),
    sales: count(sold),
    total: sumMoney(sold),
    refunds: refunds.length,
    refunded: sumMoney(refunds),
    lastPaymentAt: Number.isFinite(last) ? toIso(last) : null,
    hasCode: code.isKnown || groups.some(({ isAlone }) => isAlone),
    refusedUntil: toIso(code.refusedUntil),
    isPartial: count(current) === maxCounted || count(archived) === maxCounted,
  };
}

async function readCurrent({ db, dialect }: LedgerReads, payer: Address): Promise<Group[]> {
  const rows = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select(["network", "asset", "state", "value", "created_at", "is_alone"])
        .where("payer", "=", payer)
        .where("refund_of", "is", null)
        .limit(maxCounted)
        .as("own"),
    )
    .select(["network", "asset", "state"])
    .select((select) => [
      select.fn.countAll().as("count"),
      dialect.amount.sum(select.ref("value")).as("amount"),
      select.fn.max("created_at").as("last"),
      select.fn.max("is_alone").as("is_alone"),
    ])
    .groupBy(["network", "asset", "state"])
    .execute();
  return rows.map((row) => ({
    network: row.network,
    asset: row.asset,
    state: row.state,
    count: Number(row.count),
    amount: dialect.amount.decode(row.amount),
    last: Number(row.last),
    isAlone: Number(row.is_alone) === 1,
  }));
}

async function readArchived({ db, dialect }: LedgerReads, payer: Address): Promise<Group[]> {
  const rows = await db
    .selectFrom(
      db
        .selectFrom("archived_payments")
        .select(["network", "asset", "state", "value", "created_at"])
        .where("payer", "=", hexToBytes(payer))
        .where("refund_of", "is", null)
        .orderBy("id", "desc")
        .limit(maxCounted)
        .as("own"),
    )
    .select(["network", "asset", "state"])
    .select((select) => [
      select.fn.countAll().as("count"),
      dialect.amount.sum(select.ref("value")).as("amount"),
      select.fn.max("created_at").as("last"),
    ])
    .groupBy(["network", "asset", "state"])
    .execute();
  return rows.map((row) => ({
    network: row.network,
    asset: `0x${Buffer.from(row.asset).toString("hex")}`,
    state: row.state,
    count: Number(row.count),
    amount: dialect.amount.decode(row.amount),
    last: Number(row.last),
    isAlone: false,
  }));
}

async function readRefunds(
  { db, dialect }: LedgerReads,
  payer: Address,
): Promise<{ network: Network; asset: Address; amount: bigint }[]> {
  const rows: { network: Network; asset: Address; amount: StoredAmount }[] = await db
    .selectFrom("refunds")
    .select(["network", "asset", "amount"])
    .where("payer", "=", payer)
    .where("state", "<>", "void")
    .limit(maxRefunds)
    .execute();
  return rows.map((row) => ({ ...row, amount: dialect.amount.decode(row.amount) }));
}

/** Payers with code have a record once one of their payments was confirmed, or has burnt gas. */
async function readCode(
  { db }: LedgerReads,
  payer: Address,
): Promise<{ isKnown: boolean; refusedUntil: number | null }> {
  const burnt = await db
    .selectFrom("code_payers")
    .select("refused_until")
    .where("payer", "=", payer)
    .executeTakeFirst();
  const record = await db
    .selectFrom("code_records")
    .select("confirmed")
    .where("payer", "=", payer)
    .limit(1)
    .executeTakeFirst();
  return {
    isKnown: burnt !== undefined || record !== undefined,
    refusedUntil: burnt?.refused_until ?? null,
  };
}
