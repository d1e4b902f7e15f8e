import type { Hex } from "@coinslot/protocol";
import type { Transaction, UpdateQueryBuilder, UpdateResult } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import type { ChannelDeposit } from "./channel-deposits.ts";

/** Another process has moved the deposit meanwhile: nothing of this one is stored. */
class DepositMovedError extends Error {
  override readonly name = "DepositMovedError";
}

type Update = UpdateQueryBuilder<
  LedgerSchema,
  "channel_deposits",
  "channel_deposits",
  UpdateResult
>;

/** The deposit's row, while it is as it was read: in its state, with its transaction. */
export function asRead(update: Update, deposit: ChannelDeposit): Update {
  const { network, token, payer, nonce, state, transactionId } = deposit;
  return update
    .where("network", "=", network)
    .where("token", "=", token)
    .where("payer", "=", payer)
    .where("nonce", "=", nonce)
    .where("state", "=", state)
    .where("transaction_id", transactionId === undefined ? "is" : "=", transactionId ?? null);
}

/**
 * `queued` → `sent`, in the database transaction that stores its own, before anything is broadcast.
 *
 * @throws DepositMovedError where the row is another one: nothing is stored then
 */
export async function recordDepositSent(
  transaction: Transaction<LedgerSchema>,
  { deposit, transactionId }: { deposit: ChannelDeposit; transactionId: string },
): Promise<void> {
  const sent = transaction
    .updateTable("channel_deposits")
    .set({ state: "sent", transaction_id: transactionId, attempts: deposit.attempts + 1 });
  const { numUpdatedRows } = await asRead(sent, deposit).executeTakeFirst();
  if (numUpdatedRows !== 1n) throw new DepositMovedError("A deposit has been moved meanwhile");
}

/**
 * `queued`, `sent` → `done`: the authorization is used `serveAfter` deep, by this transaction. Its
 * gas is free again for other payers with code. Where it was dear, it counts for a minute more.
 *
 * @returns whether this call has moved it
 */
export function recordDeposited(
  ledger: LedgerContext,
  deposit: ChannelDeposit,
  { hash, blockNumber, isDear }: { hash: Hex; blockNumber: number; isDear?: boolean | undefined },
): Promise<boolean> {
  return ledger.write(async (transaction) => {
    const done = transaction.updateTable("channel_deposits").set({
      state: "done",
      hash,
      block_number: blockNumber,
      spent_at: isDear ? ledger.dialect.nowMs() : null,
    });
    const { numUpdatedRows } = await asRead(done, deposit).executeTakeFirst();
    return numUpdatedRows === 1n;
  }, forProcess);
}

/** `done`, and final: nothing takes it back any more. */
export async function endDeposit(ledger: LedgerContext, deposit: ChannelDeposit): Promise<void> {
  await ledger.write(
    (transaction) =>
      asRead(
        transaction.updateTable("channel_deposits").set({ data: null, ended_at: ledger.now() }),
        deposit,
      ).execute(),
    forProcess,
  );
}

/**
 * `queued`, `sent` → `failed`. The gas of a payer with code counts for a minute, where a
 * transaction may have burnt it. Returns whether this call has ended it.
 */
export function failDeposit(
  ledger: LedgerContext,
  deposit: ChannelDeposit,
  { reason }: { reason: string },
): Promise<boolean> {
  return ledger.write(async (transaction) => {
    const mayBurn = deposit.payerHasCode && deposit.attempts > 0;
    const failed = transaction.updateTable("channel_deposits").set({
      state: "failed",
      reason,
      data: null,
      ended_at: ledger.now(),
      spent_at: mayBurn ? ledger.dialect.nowMs() : null,
    });
    const { numUpdatedRows } = await asRead(failed, deposit).executeTakeFirst();
    return numUpdatedRows === 1n;
  });
}

/** Deletes deposits that have ended before a time. The chain remembers their nonces. */
export async function forgetDeposits(
  ledger: LedgerContext,
  { network, before }: { network: ChannelDeposit["network"]; before: number },
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .deleteFrom("channel_deposits")
        .where("network", "=", network)
        .where("ended_at", "<", before)
        .execute(),
    forProcess,
  );
}
