import type { StoredAmount } from "@coinslot/storage";
import type { Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { rememberSoldNames } from "../payments/sold-names.ts";
import type { LedgerSchema } from "../schema.ts";
import type { Channel, ChannelKey } from "./channel.ts";
import { postCharges, postingTime } from "./post-charges.ts";

type ChargeName = ChannelKey & { id: string };

/** Charges of one escrow contract; at least one. */
interface ChannelPlaceCharges extends Omit<ChannelKey, "channelId"> {
  charges: readonly Pick<ChargeName, "channelId" | "id">[];
}

/**
 * Marks the answers of charges as sent, in one statement. No effect once another charge has
 * followed: that one's voucher says that its buyer has gone on. None either for a charge that
 * another process has taken over.
 */
export async function deliverCharges(
  ledger: LedgerContext,
  { network, contract, charges }: ChannelPlaceCharges,
): Promise<void> {
  const { dialect, processId } = ledger;
  const now = ledger.now();
  await ledger.write(
    (transaction) =>
      transaction
        .updateTable("channels")
        .set({ last_delivered_at: now })
        .where("network", "=", network)
        .where("contract", "=", contract)
        // By both: the key's index leads to the rows, and no two charges share an id.
        .where("channel_id", "in", dialect.among(charges.map(({ channelId }) => channelId)))
        .where("last_id", "in", dialect.among(charges.map(({ id }) => id)))
        .where("last_owner", "=", processId)
        .execute(),
    forProcess,
  );
}

/**
 * Lowers a charge that was made in advance: its handler has charged less, or has failed before its
 * answer began. It works only while the charge is the channel's last, and its answer has not gone
 * out. The covering voucher stays where a part is charged: it covers less now. Where none is, the
 * one before comes back: in a claim, all could read the later one, and buy with it.
 *
 * The racers are the next charge, a delivery mark, a refund, and a process that has taken the
 * charge over: each of them makes this one find no row. So does a claim of the charge: the chain
 * pays what it asks for, and its calldata shows the voucher. A lowered charge would sell that one's
 * ceiling again, to any reader.
 *
 * @param options.base `charged` without this charge
 * @param options.amount of the charge from now on; 0 takes all of it back
 * @param options.route that the charge was for
 * @param options.before the voucher that covered `base`
 * @returns whether it was lowered
 */
export async function lowerCharge(
  ledger: LedgerContext,
  options: ChargeName & {
    base: bigint;
    amount: bigint;
    before?: Channel["voucher"];
    route?: string | undefined;
  },
): Promise<boolean> {
  const { network, contract, channelId, id, base, amount, before, route } = options;
  const { encode, decode } = ledger.dialect.amount;
  const forgotten = {
    ceiling: before === undefined ? null : encode(before.ceiling),
    signature: before?.signature ?? null,
    last_id: null,
    last_fingerprint: null,
    last_key_hash: null,
    last_amount: null,
    last_at: null,
    last_owner: null,
  };
  const names = await ledger.write(async (transaction) => {
    // Locked: its amount is that which the update lowers.
    const row = await transaction
      .selectFrom("channels")
      .select(["last_amount", postingTime(ledger, transaction).as("posted_at")])
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .where("last_id", "=", id)
      .$call(ledger.dialect.forUpdate)
      .executeTakeFirst();
    if (await isClaimed(transaction, { ...options, sum: encode(base + amount) })) return undefined;
    const { numUpdatedRows } = await transaction
      .updateTable("channels")
      .set({
        charged: encode(base + amount),
        ...(amount === 0n ? forgotten : { last_amount: encode(amount) }),
      })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .where("last_id", "=", id)
      .where("last_delivered_at", "is", null)
      .where("last_owner", "=", ledger.processId)
      .where("last_amount", ">", encode(amount))
      .where("refunding", "=", 0)
      .executeTakeFirst();
    const before = row?.last_amount ?? null;
    if (numUpdatedRows === 0n || before === null) return undefined;
    const lowered = { network, contract, channelId, route, amount: decode(before) - amount };
    return postCharges(ledger, transaction, {
      charges: [{ ...lowered, isReversal: true }],
      at: Number(row?.posted_at),
    });
  });
  if (names !== undefined) rememberSoldNames(ledger.soldNames, names);
  return names !== undefined;
}

/**
 * Whether more than a sum is claimed of a channel: by the chain, or by a claim that may get there.
 */
async function isClaimed(
  transaction: Transaction<LedgerSchema>,
  { network, contract, channelId, sum }: ChannelKey & { sum: StoredAmount },
): Promise<boolean> {
  const claim = await transaction
    .selectFrom("channel_claims")
    .select("transaction_id")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .where("state", "!=", "failed")
    .where("total_claimed", ">", sum)
    .limit(1)
    .executeTakeFirst();
  if (claim !== undefined) return true;
  const state = await transaction
    .selectFrom("channel_states")
    .select("claimed")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .where("claimed", ">", sum)
    .executeTakeFirst();
  return state !== undefined;
}
