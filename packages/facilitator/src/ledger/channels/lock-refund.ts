import type { Address } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { isSilenceDeath, selectAlive } from "../maintenance/living-processes.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";

/** Bounds of refunds: each costs gas of the seller's. */
export interface RefundLimits {
  /** Of one signer in a day. */
  perSigner: number;
  /**
   * Of a network in an hour: signers cost nothing. The second half is kept for channels that have
   * paid for it. Those without a purchase cannot use it up.
   */
  perHour: number;
}

/** A refund to be begun. Amounts are in the token's smallest unit. */
export interface NewRefund extends ChannelKey {
  id: string;
  signer: Address;
  /** `charged` of the row on which it was decided. */
  seen: bigint;
  /** Charged so far, as the signer has signed it. */
  ceiling: bigint;
  /** `undefined`: all that is not charged. */
  asked: bigint | undefined;
  /** Enough was charged on the channel since its last refund to pay for the gas of this one. */
  isPaidFor: boolean;
  /** The newest block of the chain. */
  sinceNumber: number;
}

/**
 * `busy`: a request runs, an answer may still lower its charge, or a refund is under way. Or the
 * channel has gone on. `limited`: too many refunds. Nothing was written.
 */
export type LockOutcome =
  | { outcome: "locked" | "busy" }
  | { outcome: "limited"; retryAfterMs: number };

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/**
 * Locks a channel for a refund, on the disk before it returns: nothing is charged on it, reserved
 * or lowered from then on. It takes away the reserved run of a dead process. Without `limits` it is
 * an operator's act.
 *
 * The racers:
 * - a charge or a reserved run, here or in another process: `charged` differs, or its token lives;
 * - a charge in advance whose handler may lower it: its owner lives, and has not delivered it;
 * - another refund of the channel: `refunding` is set, and the index has one open row;
 * - other refunds of one signer at once: their number may pass the limit by one each.
 */
export function lockRefund(
  ledger: LedgerContext,
  { limits, ...refund }: NewRefund & { limits: RefundLimits | undefined },
): Promise<LockOutcome> {
  const { encode } = ledger.dialect.amount;
  const { network, contract, channelId } = refund;
  return ledger.write<LockOutcome>(async (transaction) => {
    const retryAfterMs = limits && (await findLimit(ledger, transaction, { ...refund, limits }));
    if (retryAfterMs !== undefined) return { outcome: "limited", retryAfterMs };
    const isDeath = await isSilenceDeath(ledger, transaction);
    const living = isDeath
      ? selectAlive(ledger, transaction)
      : transaction.selectFrom("processes").select("id");
    const { numUpdatedRows } = await transaction
      .updateTable("channels")
      .set({ refunding: 1, running_token: null, running_owner: null })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .where("charged", "=", encode(refund.seen))
      .where("refunding", "=", 0)
      .where(({ or, eb }) =>
        or([eb("running_token", "is", null), eb("running_owner", "not in", living)]),
      )
      .where(({ or, eb }) =>
        or([
          eb("last_delivered_at", "is not", null),
          eb("last_owner", "is", null),
          eb("last_owner", "=", ledger.processId),
          eb("last_owner", "not in", living),
        ]),
      )
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return { outcome: "busy" };
    await transaction
      .insertInto("channel_refunds")
      .values({
        ...keyColumns(refund),
        id: refund.id,
        signer: refund.signer,
        ceiling: encode(refund.ceiling),
        asked: refund.asked === undefined ? null : encode(refund.asked),
        since_number: refund.sinceNumber,
        state: "locked",
        nonce: null,
        amount: null,
        transaction_id: null,
        hash: null,
        refunded: null,
        reason: null,
        created_at: ledger.now(),
        ended_at: null,
      })
      .execute();
    return { outcome: "locked" };
  });
}

/**
 * A refund of far ahead does not count: the clock that wrote it was put back since.
 *
 * @returns milliseconds until the next refund may begin; `undefined`: it may now
 */
async function findLimit(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  {
    signer,
    network,
    isPaidFor,
    limits,
  }: Pick<NewRefund, "signer" | "network" | "isPaidFor"> & { limits: RefundLimits },
): Promise<number | undefined> {
  const now = ledger.now();
  const perHour = isPaidFor ? limits.perHour : Math.ceil(limits.perHour / 2);
  const ofSigner = await transaction
    .selectFrom("channel_refunds")
    .select("created_at")
    .where("signer", "=", signer)
    .where("created_at", ">", now - dayMs)
    .where("created_at", "<", now + dayMs)
    .orderBy("created_at", "desc")
    .limit(limits.perSigner)
    .execute();
  const ofNetwork = await transaction
    .selectFrom("channel_refunds")
    .select("created_at")
    .where("network", "=", network)
    .where("created_at", ">", now - hourMs)
    .where("created_at", "<", now + hourMs)
    .orderBy("created_at", "desc")
    .limit(perHour)
    .execute();
  const waits = [
    ...waitFor(ofSigner, limits.perSigner, now - dayMs),
    ...waitFor(ofNetwork, perHour, now - hourMs),
  ];
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** The time until the oldest of a full window leaves it. */
function waitFor(rows: readonly { created_at: number }[], most: number, since: number): number[] {
  const oldest = rows.at(-1);
  return oldest === undefined || rows.length < most ? [] : [oldest.created_at - since];
}
