import {
  type Address,
  type ChannelOffer,
  isSameAddress,
  voucherTypedData,
} from "@coinslot/protocol";
import { recoverTypedDataAddress } from "viem";
import { type ChannelRecord, larger } from "./channel-record.ts";

/** Proof of a seller's correction: its count, and the highest ceiling of an own signature. */
export interface ProvenCorrection {
  charged: bigint;
  ceiling: bigint;
}

/**
 * Checks a corrective offer against the own record, the own node and the own signature. Nothing of
 * it is believed without them.
 *
 * @param accepted the offer that the voucher was signed for
 * @param claimed `totalClaimed` by the own node
 * @returns the reason why it is not believed
 */
export async function checkCorrection(options: {
  correction: ChannelOffer;
  accepted: ChannelOffer;
  record: ChannelRecord;
  claimed: bigint;
}): Promise<ProvenCorrection | string> {
  const { correction, accepted, record, claimed } = options;
  const { channelState, voucherState } = correction;
  const charged = channelState?.chargedCumulativeAmount;
  if (charged === undefined) return "it names no charged sum";
  if (channelState?.channelId !== record.id) return "it is for another channel";
  if (!hasSameTerms(correction, accepted)) return "it has other terms than the offer";
  if (correction.amount > accepted.amount) return "it has a higher price than the offer";
  if (charged < claimed) return "the chain shows more as claimed";

  const { signedMaxClaimable: signed, signature } = voucherState ?? {};
  if (signed === undefined || signature === undefined) {
    // Without any voucher, a seller can have charged what the chain shows, and nothing more.
    if (charged !== claimed) return "it has no voucher";
    return { charged, ceiling: larger(record.ceiling, charged) };
  }
  if (charged > signed) return "its voucher is below its charged sum";
  const { payerAuthorizer } = record.config;
  const message = { channelId: record.id, maxClaimableAmount: signed };
  const data = voucherTypedData(message, { network: record.network });
  if (!(await isSignedBy(payerAuthorizer, data, signature))) {
    return "its voucher has another signature";
  }
  return { charged, ceiling: larger(record.ceiling, signed) };
}

/** Returns whether an address signed, as plain ECDSA: the escrow takes nothing else of a buyer. */
export async function isSignedBy(
  address: Address,
  data: ReturnType<typeof voucherTypedData>,
  signature: `0x${string}`,
): Promise<boolean> {
  if (!/^0x[0-9a-f]{128}1[bc]$/i.test(signature)) return false;
  try {
    return isSameAddress(await recoverTypedDataAddress({ ...data, signature }), address);
  } catch {
    return false;
  }
}

function hasSameTerms(one: ChannelOffer, other: ChannelOffer): boolean {
  return (
    one.network === other.network &&
    one.token === other.token &&
    one.receiver === other.receiver &&
    one.receiverAuthorizer === other.receiverAuthorizer &&
    one.withdrawDelay === other.withdrawDelay
  );
}
