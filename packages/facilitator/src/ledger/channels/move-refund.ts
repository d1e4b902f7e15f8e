import type { Hex } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import type { ChannelRefund, SignedRefund } from "./channel-refunds.ts";

/** Another process has moved the refund meanwhile: nothing of this one is stored. */
class RefundMovedError extends Error {
  override readonly name = "RefundMovedError";
}

/**
 * `locked` → `sent`, or another transaction of a sent one with the same nonce and amount: in the
 * database transaction that stores it, before anything is broadcast. The channel is read with each
 * block from then on.
 *
 * @throws RefundMovedError where the row is another one: nothing is stored then
 */
export async function recordRefundSent(
  { dialect }: Pick<LedgerContext, "dialect">,
  transaction: Transaction<LedgerSchema>,
  { refund, signed }: { refund: ChannelRefund; signed: SignedRefund },
): Promise<void> {
  const { encode } = dialect.amount;
  const before = refund.signed?.transactionId;
  const { numUpdatedRows } = await transaction
    .updateTable("channel_refunds")
    .set({
      state: "sent",
      nonce: encode(signed.nonce),
      amount: encode(signed.amount),
      transaction_id: signed.transactionId,
    })
    .where("id", "=", refund.id)
    .where("state", "=", refund.state)
    .where("transaction_id", before === undefined ? "is" : "=", before ?? null)
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) throw new RefundMovedError("A refund has been moved meanwhile");
  await transaction
    .updateTable("channel_states")
    .set({ is_moving: 1 })
    .where("network", "=", refund.network)
    .where("contract", "=", refund.contract)
    .where("channel_id", "=", refund.channelId)
    .execute();
}

/** Notes the event of a sent refund at the head; `undefined`: the head has none any more. */
export async function noteRefundEvent(
  ledger: LedgerContext,
  refund: ChannelRefund,
  event: { hash: Hex; refunded: bigint } | undefined,
): Promise<void> {
  const { encode } = ledger.dialect.amount;
  await ledger.write(
    (transaction) =>
      transaction
        .updateTable("channel_refunds")
        .set({
          hash: event?.hash ?? null,
          refunded: event === undefined ? null : encode(event.refunded),
        })
        .where("id", "=", refund.id)
        .where("state", "=", "sent")
        .execute(),
    forProcess,
  );
}

/**
 * Ends a refund, and unlocks its channel. No signature of it may be good any more: the escrow's
 * nonce has finally passed, or none has left this ledger's processes.
 *
 * The racer is another process that stores its transaction: one of both finds another row.
 *
 * @returns whether this call has ended it
 */
export function endRefund(
  ledger: LedgerContext,
  refund: ChannelRefund,
  end:
    | { state: "done"; event: { hash: Hex; refunded: bigint } }
    | { state: "failed"; reason: string },
): Promise<boolean> {
  const { encode } = ledger.dialect.amount;
  const { network, contract, channelId, signed } = refund;
  const event = end.state === "done" ? end.event : undefined;
  return ledger.write(async (transaction) => {
    // In the order of the lock: the channel first.
    await transaction
      .selectFrom("channels")
      .select("refunding")
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .$call(ledger.dialect.forUpdate)
      .execute();
    const { numUpdatedRows } = await transaction
      .updateTable("channel_refunds")
      .set({
        state: end.state,
        hash: event?.hash ?? null,
        refunded: event === undefined ? null : encode(event.refunded),
        reason: end.state === "failed" ? end.reason : null,
        ended_at: ledger.now(),
      })
      .where("id", "=", refund.id)
      .where("state", "=", refund.state)
      .where("transaction_id", signed === undefined ? "is" : "=", signed?.transactionId ?? null)
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) return false;
    await transaction
      .updateTable("channels")
      .set({ refunding: 0 })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .execute();
    return true;
  });
}
