import type { SettleErrorReason } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { ExpressionBuilder, Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema, PaymentState } from "../schema.ts";
import { is } from "../states.ts";
import { type SettledTransaction, settleTransaction } from "../transactions/settle-transaction.ts";
import { type GasBurn, recordBurn } from "./admit-code.ts";
import { billBurntGas } from "./code-budget.ts";
import { addToRecords, type RecordOwner } from "./code-records.ts";
import {
  type ConcludedPayment,
  concludedColumns,
  type Inclusion,
  outcomeColumns,
  type RecordedRow,
  toRecordedPayment,
} from "./ledger-payment.ts";

/** Outcomes of payments, decided by a block, or by the chain's refusal beforehand. */
export interface PaymentOutcomes {
  /** `queued`, `submitted`, `failed` → `confirmed`: the exact Transfer stands in this block. */
  confirmed?:
    | {
        ids: readonly string[];
        inclusion: Inclusion;
        gasShare?: bigint | undefined;
        /**
         * Gas that the budget of payers with code bills where another sender's transaction executed
         * it, and ours failed.
         */
        billedGas?: bigint | undefined;
        /** The same where our transaction executed it: gas beyond that of an ordinary call. */
        excessGas?: bigint | undefined;
        /** A transaction of ours burnt gas for it, before another sender's executed it. */
        burn?: GasBurn | undefined;
      }
    | undefined;
  /**
   * `queued`, `submitted` → `failed`. With the block of the transaction that did not move the
   * money, if there was one.
   */
  failed?:
    | {
        ids: readonly string[];
        reason: SettleErrorReason;
        /** Decided by the receipt of this transaction: only of payments that it still carries. */
        transactionId?: string | undefined;
        inclusion?: Inclusion | undefined;
        gasShare?: bigint | undefined;
        /**
         * Gas of our transaction that the budget of payers with code bills. Default: all at risk.
         */
        billedGas?: bigint | undefined;
        /** Its payer's record begins anew; one that is to blame is refused from now on. */
        burn?: GasBurn | undefined;
      }[]
    | undefined;
  /**
   * `submitted` → `queued`: this transaction, which carried it, was included without having tried
   * it fairly.
   */
  requeued?: { ids: readonly string[]; transactionId: string } | undefined;
  /**
   * Fingerprints: only payments that are still queued under one of them are confirmed, or fail. A
   * decision on the queue does not hold for others. A transaction carries them by now, or they were
   * signed anew.
   */
  queuedUnder?: readonly string[] | undefined;
}

/**
 * Records outcomes and, with them, the state of their transaction. A payment that is in none of the
 * states named is left alone.
 *
 * The racers are two processes that read the same block, the old and the new holder of a lease.
 * They write the same, and the second changes nothing. That holds where the payment has failed, was
 * reserved again, and another transaction carries it by now.
 *
 * @returns the payments that changed, in their current state.
 */
export function recordOutcomes(
  ledger: LedgerContext,
  outcomes: readonly PaymentOutcomes[],
  settled?: SettledTransaction | undefined,
): Promise<ConcludedPayment[]> {
  return ledger.write(async (transaction) => {
    const changed: RecordedRow[] = [];
    const vouching: RecordOwner[] = [];
    for (const each of outcomes) {
      changed.push(...(await record({ ledger, transaction, vouching }, each)));
    }
    if (vouching.length > 0) {
      await addToRecords({ transaction, dialect: ledger.dialect, owners: vouching });
    }
    if (settled) await settleTransaction({ transaction, dialect: ledger.dialect, ...settled });
    return changed.map((row) => toRecordedPayment(row, ledger.dialect));
  });
}

async function record(
  recording: {
    ledger: LedgerContext;
    transaction: Transaction<LedgerSchema>;
    /** Gets the owner of each payment that counts for its payer's record. */
    vouching: RecordOwner[];
  },
  outcomes: PaymentOutcomes,
): Promise<RecordedRow[]> {
  const { ledger, transaction, vouching } = recording;
  const { dialect, codePayers } = ledger;
  const now = ledger.now();
  const changed: RecordedRow[] = [];
  const { confirmed, failed = [], requeued, queuedUnder } = outcomes;
  if (confirmed && confirmed.ids.length > 0) {
    const { transactionHash, blockNumber, blockHash } = confirmed.inclusion;
    const rows = await transaction
      .updateTable("payments")
      .set({
        state: "confirmed",
        transaction_hash: transactionHash,
        block_number: blockNumber,
        block_hash: blockHash,
        reason: null,
        confirmed_at: now,
        closed_at: null,
        ...gasShareColumn(confirmed.gasShare),
      })
      .where("id", "in", dialect.among(confirmed.ids))
      .where(standsAt(["queued", "submitted", "failed"], { queuedUnder, dialect }))
      .returning([...concludedColumns, ...outcomeColumns, "is_alone"])
      .execute();
    changed.push(...rows);
    vouching.push(...rows.filter((row) => row.is_alone === 1 && isRecord(row, confirmed)));
    await noteBurn(rows, confirmed);
  }
  for (const failure of failed) {
    const { ids, reason, transactionId, inclusion, gasShare } = failure;
    if (ids.length === 0) continue;
    const failing = transaction
      .updateTable("payments")
      .set({
        state: "failed",
        reason,
        transaction_hash: inclusion?.transactionHash ?? null,
        block_number: inclusion?.blockNumber ?? null,
        block_hash: inclusion?.blockHash ?? null,
        ...gasShareColumn(gasShare),
      })
      .where("id", "in", dialect.among(ids))
      .where(standsAt(["queued", "submitted"], { queuedUnder, dialect }));
    const carried =
      transactionId === undefined ? failing : failing.where("transaction_id", "=", transactionId);
    const rows = await carried
      .returning([...concludedColumns, ...outcomeColumns, "is_alone"])
      .execute();
    changed.push(...rows);
    await noteBurn(rows, failure);
  }
  if (requeued && requeued.ids.length > 0) {
    await transaction
      .updateTable("payments")
      .set({ state: "queued", transaction_id: null })
      .where("id", "in", dialect.among(requeued.ids))
      // Read twice, it must not be taken from the transaction that carries it since.
      .where("transaction_id", "=", requeued.transactionId)
      .where("state", "=", is("submitted"))
      .execute();
  }
  return changed;

  /** Of two processes that read the same block, the second finds nothing to change. */
  async function noteBurn(
    rows: readonly { id: string; is_alone: number }[],
    {
      billedGas,
      excessGas,
      burn,
    }: {
      billedGas?: bigint | undefined;
      excessGas?: bigint | undefined;
      burn?: GasBurn | undefined;
    },
  ): Promise<void> {
    const gas = billedGas ?? excessGas;
    const paymentIds = rows.flatMap(({ id, is_alone }) => (is_alone === 1 ? id : []));
    if (paymentIds.length === 0) return;
    if (gas !== undefined) await billBurntGas({ transaction, dialect, paymentIds, gas });
    if (burn) await recordBurn({ transaction, dialect, burn, refusalMs: codePayers.refusalMs });
  }
}

/**
 * True if a confirmed payment counts for its payer's record. Our transaction executed it, or none
 * of ours ever tried it.
 */
function isRecord(
  { gas_share }: { gas_share: number | null },
  { gasShare, billedGas }: { gasShare?: bigint | undefined; billedGas?: bigint | undefined },
): boolean {
  return gas_share === null || (gasShare !== undefined && billedGas === undefined);
}

/** An execution by another sender leaves the share of a transaction of ours that tried before. */
function gasShareColumn(gas: bigint | undefined): { gas_share?: number } {
  return gas === undefined ? {} : { gas_share: Number(gas) };
}

/**
 * The guard of an outcome: one of these states. For a decision on the queue, only `queued` under
 * its fingerprints.
 */
function standsAt(
  states: readonly PaymentState[],
  { queuedUnder, dialect }: Pick<PaymentOutcomes, "queuedUnder"> & { dialect: Dialect },
) {
  return (where: ExpressionBuilder<LedgerSchema, "payments">) =>
    queuedUnder === undefined
      ? where("state", "in", states)
      : where.and([
          where("state", "=", is("queued")),
          where("fingerprint", "in", dialect.among(queuedUnder)),
        ]);
}
