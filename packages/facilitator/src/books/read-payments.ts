import type { Address, Hex, Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { findLost } from "../ledger/queries/find-lost.ts";

/** A payment, as far as its entries are compared with it. */
export interface CheckedPayment {
  id: string;
  state: string;
  network: Network;
  asset: Address;
  payer: Address;
  value: bigint;
  route_id: number | null;
  pay_to_id: number | null;
  pay_to: Address | null;
  refund_of: string | null;
  transaction: Hex | undefined;
  block_number: number | null;
  final_at: number | null;
  /** A sale that was final, and has ended without its money. */
  isLost: boolean;
}

const columns = [
  "id",
  "state",
  "network",
  "asset",
  "payer",
  "value",
  "route_id",
  "pay_to_id",
  "refund_of",
  "transaction_hash",
  "block_number",
  "final_at",
  "closed_at",
] as const;

/** One page of payments. */
export interface PaymentsPage {
  /** Without those from before the books that are not posted yet. */
  payments: CheckedPayment[];
  /** Number of rows read, and the last of their ids. */
  count: number;
  last: string | undefined;
}

/** The next payments in the order of their ids, archived or not. */
export async function readPayments(
  { db, dialect }: LedgerReads,
  { after, before, limit }: { after: string; before: string; limit: number },
): Promise<PaymentsPage> {
  const { posted_to, last_id } = await db
    .selectFrom("book_progress")
    .selectAll()
    .executeTakeFirstOrThrow();
  const current = await db
    .selectFrom("payments")
    .select(columns)
    .where("id", ">", after)
    .where("id", "<", before)
    .orderBy("id")
    .limit(limit)
    .execute();
  const archived = await db
    .selectFrom("archived_payments")
    .select(columns)
    .where("id", ">", after)
    .where("id", "<", before)
    .orderBy("id")
    .limit(limit)
    .execute();
  const unnamed = current.filter(({ state, pay_to_id }) => state === "confirmed" && !pay_to_id);
  const orders = await readRecipients({ db, dialect }, unnamed);
  const rows = [...current, ...archived]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .slice(0, limit);
  const lost = await findLost({ db, dialect }, rows);
  const payments = rows.flatMap((row) => {
    const isPosted = row.id <= posted_to || row.id > last_id;
    if (!isPosted) return [];
    return {
      id: row.id,
      state: row.state,
      network: row.network,
      asset: hexOf(row.asset),
      payer: hexOf(row.payer),
      value: dialect.amount.decode(row.value),
      route_id: row.route_id,
      pay_to_id: row.pay_to_id,
      pay_to: orders.get(row.id) ?? null,
      refund_of: row.refund_of,
      transaction: row.transaction_hash === null ? undefined : hexOf(row.transaction_hash),
      block_number: row.block_number,
      final_at: row.final_at,
      isLost: lost.has(row.id),
    };
  });
  return { payments, count: rows.length, last: rows.at(-1)?.id };
}

/** Payments older than the dictionary have their recipient in their order alone. */
async function readRecipients(
  { db, dialect }: LedgerReads,
  payments: readonly { id: string }[],
): Promise<Map<string, Address>> {
  if (payments.length === 0) return new Map();
  const rows = await db
    .selectFrom("orders")
    .select(["payment_id", "pay_to"])
    .where("payment_id", "in", dialect.among(payments.map(({ id }) => id)))
    .execute();
  return new Map(rows.map(({ payment_id, pay_to }) => [payment_id, pay_to]));
}

function hexOf(value: Hex | Uint8Array): Hex {
  return typeof value === "string" ? value : `0x${Buffer.from(value).toString("hex")}`;
}
