import {
  type Address,
  type ChannelCallReason,
  type ChannelVerification,
  type HostedCaller,
  type InvalidReason,
  toLowerHex,
} from "@coinslot/protocol";
import type { HostedContext, Permit } from "./hosted-context.ts";

/** Money that a request would move. In lower case. */
interface Moved {
  receiver: Address;
  token: Address;
}

type Refusal = { reason: ChannelCallReason | InvalidReason; message: string };

/**
 * Decides whether a caller may ask for this: every receiver is one of its own, and every token is
 * served. It asks no node and no ledger.
 */
export function permit(
  { settings, networks }: HostedContext,
  message: {
    paymentPayload: Pick<ChannelVerification["paymentPayload"], "accepted">;
    paymentRequirements: ChannelVerification["paymentRequirements"];
  },
  { asker, moved }: { asker: HostedCaller; moved: readonly Moved[] },
): Permit | Refusal {
  const { paymentPayload, paymentRequirements } = message;
  const { network: name, payTo, asset } = paymentRequirements;
  if (paymentPayload.accepted.network !== name) {
    return {
      reason: "invalid_batch_settlement_evm_network_mismatch",
      message: "The payload accepts another network than that of the requirements.",
    };
  }
  const network = networks.get(name);
  if (network === undefined) {
    return { reason: "invalid_network", message: `No channels are served on ${name}.` };
  }
  const { caller, isGone } = asker;
  const receivers = caller === undefined ? undefined : settings.receivers.get(caller);
  const all = [...moved, { receiver: toLowerHex(payTo), token: toLowerHex(asset) }];
  if (caller === undefined || !all.every(({ receiver }) => receivers?.has(receiver))) {
    return {
      reason: "recipient_not_allowed",
      message: "This facilitator moves escrow for the recipients of its callers' keys alone.",
    };
  }
  const unserved = all.find(({ token }) => network.assets?.has(token) === false);
  if (unserved !== undefined) {
    return {
      reason: "invalid_payment_requirements",
      message: `The asset ${unserved.token} is not served here.`,
    };
  }
  return { caller, isGone, network, begunAt: network.escrow.context.clock.now() };
}
