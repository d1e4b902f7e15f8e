import { amountSchema, bytes32Schema, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import { defineOperation } from "../../operators/operation.ts";
import { networkArgument } from "../../reads/wire-forms.ts";

/**
 * Gives back what was not charged on a channel, to its payer, or a part of it. A repetition with
 * the same key begins nothing more. While another refund of the channel runs, it is refused.
 */
export const refundChannelOperation = defineOperation({
  name: "channels.refund",
  access: "seller",
  argument: z.strictObject({
    network: networkArgument,
    channel: bytes32Schema,
    /** In the token's smallest unit, above 0. Default: all that was not charged. */
    amount: amountSchema.refine((amount) => amount !== "0", "is 0").optional(),
    idempotencyKey: z.string().min(1).max(128),
  }),
  result: z.object({
    id: z.string(),
    network: z.string(),
    channel: z.string(),
    /** `locked`, `sent`, `done` or `failed`. */
    state: z.string(),
    /** Of the signed refund, or of its events. */
    amount: z.string().nullable(),
    transaction: z.string().nullable(),
    reason: z.string().nullable(),
  }),
  timeoutMs: 60_000,
  async run({ refundChannel }, { network, channel, amount, idempotencyKey }) {
    const refund = await refundChannel(network, {
      channelId: toLowerHex(channel),
      amount: amount === undefined ? undefined : BigInt(amount),
      idempotencyKey,
    });
    const { id, state, signed, event, reason } = refund;
    const given = event?.refunded ?? signed?.amount;
    return {
      id,
      network,
      channel: refund.channelId,
      state,
      amount: given === undefined ? null : `${given}`,
      transaction: event?.hash ?? null,
      reason: reason ?? null,
    };
  },
});
