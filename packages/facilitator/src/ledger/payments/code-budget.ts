import type { Address, Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { LedgerSchema } from "../schema.ts";

/** Time for which spent gas counts after its transaction. */
export const gasWindowMs = 60_000;
/** An open payment gives its gas back when it is confirmed, which takes a few blocks. */
export const openRetryMs = 2_000;

/** Gas at risk of a part of the payments of one network. */
export interface SpentGas {
  used: bigint;
  /** Time until something is given back, as far as is known. */
  nextMs: number;
}

/**
 * Gas spent by payments, and by deposits into channels, of payers with code on one network. Times
 * are milliseconds that are left.
 */
export interface CodeBudget {
  nowMs: number;
  /** Of payments that no record vouches for. */
  unvouched: SpentGas;
  vouched: SpentGas;
  /** Gas at risk of each open payment, by identity. */
  open: Map<string, { gas: bigint; isVouched: boolean }>;
  /** Ended payments that still count, by identity. */
  ended: Map<string, { why: "no_gas_left" | "given_up"; forMs: number }>;
  /** Those of them that no transaction carried, by payer: each keeps a place of its payer. */
  givenUpForMs: Map<Address, number[]>;
}

/**
 * Locks the network's row until the transaction ends, reads the spent gas, and deletes rows that
 * count no more.
 */
export async function readCodeBudget(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  network: Network;
}): Promise<CodeBudget> {
  const { transaction, dialect, network } = options;
  await dialect.insertMany<LedgerSchema, "code_budgets">(
    transaction,
    "code_budgets",
    [{ network }],
    "ignore",
  );
  const { now_ms: nowMs } = await transaction
    .selectFrom("code_budgets")
    .select(dialect.nowMs().as("now_ms"))
    .where("network", "=", network)
    .$call(dialect.forUpdate)
    .executeTakeFirstOrThrow();
  await endFuture(transaction, { network, nowMs });
  const rows = await transaction
    .selectFrom("code_gas")
    .leftJoin("payments", "payments.id", "code_gas.payment_id")
    .leftJoin("transactions", "transactions.id", "payments.transaction_id")
    .select(["payment_id", "gas", "burnt", "spent_at", "is_vouched", "payer", "payments.state"])
    .select(["submitted_at", "gas_share", "payments.transaction_hash", "transactions.hash"])
    .where("code_gas.network", "=", network)
    .execute();
  const budget: CodeBudget = {
    nowMs,
    unvouched: { used: 0n, nextMs: gasWindowMs },
    vouched: { used: 0n, nextMs: gasWindowMs },
    open: new Map(),
    ended: new Map(),
    givenUpForMs: new Map(),
  };
  const over: string[] = [];
  for (const row of rows) {
    const { payment_id, gas, burnt, spent_at, is_vouched, payer, state, submitted_at } = row;
    const isVouched = is_vouched === 1;
    const spent = isVouched ? budget.vouched : budget.unvouched;
    const leftMs = spent_at + gasWindowMs - nowMs;
    if (state === "reserved" || state === "queued" || state === "submitted") {
      spent.used += BigInt(gas);
      spent.nextMs = Math.min(spent.nextMs, openRetryMs);
      budget.open.set(payment_id, { gas: BigInt(gas), isVouched });
    } else if (payer === null || leftMs <= 0 || burnt === 0) {
      over.push(payment_id);
    } else if (state === "confirmed" && burnt === null && !wasTriedInVain(row)) {
      over.push(payment_id);
    } else if (submitted_at !== null) {
      spent.used += BigInt(burnt ?? gas);
      spent.nextMs = Math.min(spent.nextMs, leftMs);
      budget.ended.set(payment_id, { why: "no_gas_left", forMs: leftMs });
    } else {
      budget.ended.set(payment_id, { why: "given_up", forMs: leftMs });
      budget.givenUpForMs.set(payer, [...(budget.givenUpForMs.get(payer) ?? []), leftMs]);
    }
  }
  if (over.length > 0) {
    await transaction
      .deleteFrom("code_gas")
      .where("payment_id", "in", dialect.among(over))
      .execute();
  }
  await addDeposits(transaction, { network, budget });
  return budget;
}

/**
 * Begins the minute of gas anew that was spent in the future: the database's clock was set back
 * since. The gas would count for as long as that.
 */
async function endFuture(
  transaction: Transaction<LedgerSchema>,
  { network, nowMs }: { network: Network; nowMs: number },
): Promise<void> {
  await transaction
    .updateTable("code_gas")
    .set({ spent_at: nowMs })
    .where("network", "=", network)
    .where("spent_at", ">", nowMs)
    .execute();
  await transaction
    .updateTable("channel_deposits")
    .set({ spent_at: nowMs })
    .where("network", "=", network)
    // As in the index's own condition.
    .where(sql<boolean>`spent_at is not null`)
    .where("spent_at", ">", nowMs)
    .execute();
}

/**
 * Adds deposits into channels: those that are queued or sent. Those that a transaction has carried
 * in vain, or with much gas, count for a minute. A deposit's own row has its gas, until it counts
 * no more.
 */
async function addDeposits(
  transaction: Transaction<LedgerSchema>,
  { network, budget }: { network: Network; budget: CodeBudget },
): Promise<void> {
  const { nowMs } = budget;
  const rows = await transaction
    .selectFrom("channel_deposits")
    .select(["gas", "is_vouched", "spent_at", "state"])
    .where("network", "=", network)
    // As in the index's own condition.
    .where(sql<boolean>`spent_at is not null`)
    .execute();
  let isOver = false;
  for (const { gas, is_vouched, spent_at, state } of rows) {
    const spent = is_vouched === 1 ? budget.vouched : budget.unvouched;
    const leftMs = (spent_at ?? 0) + gasWindowMs - nowMs;
    const isOpen = state === "queued" || state === "sent";
    if (isOpen || leftMs > 0) {
      spent.used += BigInt(gas);
      spent.nextMs = Math.min(spent.nextMs, isOpen ? openRetryMs : leftMs);
    } else isOver = true;
  }
  if (!isOver) return;
  await transaction
    .updateTable("channel_deposits")
    .set({ spent_at: null })
    .where("network", "=", network)
    .where(sql<boolean>`spent_at is not null`)
    .where("spent_at", "<=", nowMs - gasWindowMs)
    .where("state", "not in", ["queued", "sent"])
    .execute();
}

/**
 * Begins the minute of these payments' gas anew, with the transaction that carries them. Their
 * handlers may have run for longer than a minute, and no gas was burnt before. The time is the
 * database's, as that of the reservation.
 */
export async function restartCodeGas(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  paymentIds: readonly string[];
}): Promise<void> {
  const { transaction, dialect, paymentIds } = options;
  if (paymentIds.length === 0) return;
  await transaction
    .updateTable("code_gas")
    .set({ spent_at: dialect.nowMs() })
    .where("payment_id", "in", dialect.among(paymentIds))
    .execute();
}

/**
 * Records the gas that a transaction has burnt for payments that it did not execute. For those that
 * it did, the gas beyond an ordinary call. It is never more than they had at risk. Other payments
 * have no such row.
 *
 * No lock of the budget is taken. A reservation that reads the row before sees more gas spent, and
 * admits less. While a payment is open again, all its gas is at risk again.
 */
export async function billBurntGas(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  paymentIds: readonly string[];
  gas: bigint;
}): Promise<void> {
  const { transaction, dialect, paymentIds } = options;
  const burnt = Number(options.gas);
  await transaction
    .updateTable("code_gas")
    .set((set) => ({
      burnt: set.case().when("gas", "<", burnt).then(set.ref("gas")).else(burnt).end(),
    }))
    .where("payment_id", "in", dialect.among(paymentIds))
    .execute();
}

/**
 * True if a transaction of ours tried a confirmed payment in vain: another sender's executed it.
 * Brought again, a payment keeps the share of an earlier try, whose gas has been given back.
 */
function wasTriedInVain(row: {
  gas_share: number | null;
  submitted_at: number | null;
  transaction_hash: Hex | null;
  /** Of our transaction that carried it last. */
  hash: Hex | null;
}): boolean {
  const { gas_share, submitted_at, hash, transaction_hash } = row;
  return gas_share !== null && submitted_at !== null && hash !== transaction_hash;
}
