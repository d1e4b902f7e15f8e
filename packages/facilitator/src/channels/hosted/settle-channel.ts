import type { ChannelCallAnswer, ChannelSettlement, HostedCaller } from "@coinslot/protocol";
import { claimForCaller } from "./claim-for-caller.ts";
import { depositForCaller } from "./deposit-for-caller.ts";
import type { HostedContext } from "./hosted-context.ts";
import { permit } from "./permit.ts";
import { refundForCaller } from "./refund-for-caller.ts";
import { settleForCaller } from "./settle-for-caller.ts";

/**
 * Makes the call of the escrow that a caller asks for, by the payload's type. Nothing is asked of a
 * node or of the ledger before the caller's receivers were compared.
 *
 * @throws FacilitatorError, CallerLimitedError, StoppedError, RpcError, ZodError, DatabaseError
 */
export async function settleChannel(
  hosted: HostedContext,
  message: ChannelSettlement,
  asker: HostedCaller,
): Promise<ChannelCallAnswer> {
  const { payload } = message.paymentPayload;
  const permitted = permit(hosted, message, { asker, moved: movedBy(payload) });
  if ("reason" in permitted) return { state: "refused", ...permitted };
  switch (payload.type) {
    case "deposit":
      return depositForCaller(hosted, permitted, {
        payload,
        requirements: message.paymentRequirements,
      });
    case "voucher":
      // It is claimed, with others.
      return { state: "refused", reason: "invalid_batch_settlement_evm_payload_type" };
    case "claim":
      return claimForCaller(hosted, permitted, payload);
    case "settle":
      return settleForCaller(hosted, permitted, payload);
    case "refund":
      return refundForCaller(hosted, permitted, payload);
  }
}

/** Every receiver and token that a payload names. */
function movedBy(payload: ChannelSettlement["paymentPayload"]["payload"]) {
  switch (payload.type) {
    case "deposit":
    case "voucher":
      return [payload.channelConfig];
    case "claim":
      return payload.claims.map(({ voucher }) => voucher.channel);
    case "settle":
      return [payload];
    case "refund":
      return [payload.channelConfig, ...payload.claims.map(({ voucher }) => voucher.channel)];
  }
}
