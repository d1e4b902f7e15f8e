import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { type LedgerSchema, openStates } from "../schema.ts";
import { keyColumns } from "./channel.ts";
import {
  type DepositKey,
  isDepositPending,
  type NewDeposit,
  readDeposit,
} from "./channel-deposits.ts";

/**
 * Bounds of deposits: each costs gas of the seller's. A deposit counts as often as a transaction has
 * carried it, and once at least: one that has failed may be brought again.
 */
export interface DepositLimits {
  /** Of one signer in a day. */
  perSigner: number;
  /** Of one payer in a day, that transactions carried in vain. */
  failedPerPayer: number;
  /** Of all payers with code in an hour, open ones or in vain: such a payer fails at no cost. */
  codePerHour: number;
}

/**
 * `queued`: it is on the disk. `known`: the ledger has it already, in any state but `failed`.
 * `busy`: another deposit of the channel is under way, or the payer has promised its balance to
 * others. `limited`: too many deposits. Nothing was written but by `queued`.
 */
export type QueueOutcome =
  | { outcome: "queued" | "known" | "busy" }
  | { outcome: "limited"; retryAfterMs: number };

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/**
 * Queues a deposit, on the disk before it returns: any process with a relayer sends it from then on.
 * One that has failed is queued again.
 *
 * The racers:
 * - the same deposit at another process: the key lets one write;
 * - another deposit of the channel: an index has one that is queued or sent;
 * - other deposits of one payer at once, or of payers with code: they may pass a limit by one each.
 */
export function queueDeposit(
  ledger: LedgerContext,
  { balance, limits, ...deposit }: NewDeposit & { balance: bigint; limits: DepositLimits },
): Promise<QueueOutcome> {
  const { encode } = ledger.dialect.amount;
  const { network, token, payer, nonce } = deposit;
  return ledger.write<QueueOutcome>(async (transaction) => {
    const reads = { db: transaction, dialect: ledger.dialect };
    const known = await readDeposit(reads, deposit);
    if (known !== undefined && known.state !== "failed") return { outcome: "known" };
    // The same deposit at another process may have been committed between two of these reads.
    const unlessKnown = async (refusal: QueueOutcome): Promise<QueueOutcome> => {
      const now = await readDeposit(reads, deposit);
      return now === undefined || now.state === "failed" ? refusal : { outcome: "known" };
    };
    if (await isDepositPending(reads, deposit)) return unlessKnown({ outcome: "busy" });
    const retryAfterMs = await findLimit(ledger, transaction, { ...deposit, limits });
    if (retryAfterMs !== undefined) return unlessKnown({ outcome: "limited", retryAfterMs });
    const promised = await sumPromises(ledger, transaction, deposit);
    if (promised + deposit.amount > balance) return unlessKnown({ outcome: "busy" });
    const written = {
      ...keyColumns(deposit),
      signer: deposit.signer,
      amount: encode(deposit.amount),
      valid_before: encode(deposit.validBefore),
      has_code: deposit.payerHasCode ? 1 : 0,
      data: deposit.data,
      since_number: deposit.sinceNumber,
      state: "queued",
      hash: null,
      reason: null,
      created_at: ledger.now(),
      ended_at: null,
    } as const;
    if (known !== undefined) {
      const { numUpdatedRows } = await transaction
        .updateTable("channel_deposits")
        .set(written)
        .where("network", "=", network)
        .where("token", "=", token)
        .where("payer", "=", payer)
        .where("nonce", "=", nonce)
        .where("state", "=", "failed")
        .executeTakeFirst();
      return { outcome: numUpdatedRows === 1n ? "queued" : "known" };
    }
    const { numInsertedOrUpdatedRows } = await transaction
      .insertInto("channel_deposits")
      .values({ token, payer, nonce, ...written, attempts: 0, transaction_id: null })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return numInsertedOrUpdatedRows === 1n
      ? { outcome: "queued" }
      : unlessKnown({ outcome: "busy" });
  });
}

/** The payer's open payments and deposits in the token: its balance covers them, too. */
async function sumPromises(
  { dialect }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { network, token, payer }: DepositKey,
): Promise<bigint> {
  const payments = await transaction
    .selectFrom("payments")
    .select("value")
    .where("payer", "=", payer)
    .where("state", "in", openStates)
    .where("network", "=", network)
    .where("asset", "=", token)
    .execute();
  const deposits = await transaction
    .selectFrom("channel_deposits")
    .select("amount as value")
    .where("payer", "=", payer)
    .where("network", "=", network)
    .where("token", "=", token)
    .where("state", "in", ["queued", "sent"])
    .execute();
  const { decode } = dialect.amount;
  return [...payments, ...deposits].reduce((sum, { value }) => sum + decode(value), 0n);
}

/** @returns milliseconds until the next deposit may be queued; `undefined`: it may now */
async function findLimit(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { signer, payer, network, payerHasCode, limits }: NewDeposit & { limits: DepositLimits },
): Promise<number | undefined> {
  const now = ledger.now();
  const newest = transaction
    .selectFrom("channel_deposits")
    .select(["created_at", "attempts"])
    .orderBy("created_at", "desc");
  const waits: number[] = [];
  const count = async (query: typeof newest, most: number, windowMs: number): Promise<void> => {
    const rows = await query
      .where("created_at", ">", now - windowMs)
      .limit(most)
      .execute();
    let sum = 0;
    // The row with whose end there is room again.
    const oldest = rows.find(({ attempts }) => {
      sum += Math.max(1, attempts);
      return sum >= most;
    });
    if (oldest !== undefined) waits.push(oldest.created_at - (now - windowMs));
  };
  await count(newest.where("signer", "=", signer), limits.perSigner, dayMs);
  const failed = newest
    .where("payer", "=", payer)
    .where("state", "=", "failed")
    .where("attempts", ">", 0);
  await count(failed, limits.failedPerPayer, dayMs);
  if (payerHasCode) {
    const risky = newest
      .where("network", "=", network)
      .where("has_code", "=", 1)
      .where("state", "in", ["queued", "sent", "failed"]);
    await count(risky, limits.codePerHour, hourMs);
  }
  return waits.length === 0 ? undefined : Math.max(...waits);
}
