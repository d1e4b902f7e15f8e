import type {
  Address,
  ChannelReason,
  ChannelTerms,
  Hex,
  InvalidReason,
  PresentedVoucher,
  Voucher,
} from "@coinslot/protocol";
import type { RecoverSigner } from "../../evm/recover-signer.ts";
import { splitSignature } from "../../evm/split-signature.ts";
import type { ChannelDigests } from "./channel-digests.ts";

const zeroAddress: Address = `0x${"0".repeat(40)}`;

/**
 * Checks a voucher without a key and without the chain. A voucher that passes can be claimed, as
 * far as its signature goes: the escrow's rules, byte by byte.
 *
 * A `payerAuthorizer` of zero is refused. The payer's code would then decide about each claim, and
 * could change its mind after the sale.
 *
 * @returns the first reason against it, in the order of the public specification
 */
export function checkVoucher(
  { channelConfig: config, voucher }: PresentedVoucher,
  {
    terms,
    digests,
    recoverSigner,
  }: { terms: ChannelTerms; digests: ChannelDigests; recoverSigner: RecoverSigner },
): ChannelReason | InvalidReason | undefined {
  if (digests.channelIdOf(config) !== voucher.channelId) {
    return "invalid_batch_settlement_evm_channel_id_mismatch";
  }
  if (config.receiver !== terms.receiver) return "invalid_batch_settlement_evm_receiver_mismatch";
  if (config.receiverAuthorizer !== terms.receiverAuthorizer) {
    return "invalid_batch_settlement_evm_receiver_authorizer_mismatch";
  }
  if (config.token !== terms.token) return "invalid_batch_settlement_evm_token_mismatch";
  if (config.withdrawDelay !== terms.withdrawDelay) {
    return "invalid_batch_settlement_evm_withdraw_delay_mismatch";
  }
  if (config.payerAuthorizer === zeroAddress) return "payer_not_accepted";
  const signer = recoverVoucherSigner(voucher, { digests, recoverSigner });
  if (signer !== config.payerAuthorizer) return "invalid_batch_settlement_evm_voucher_signature";
  return undefined;
}

/**
 * The account whose key signed a voucher; `undefined` where the escrow takes no such signature. It
 * takes 65 bytes, with v as 27 or 28 and a low s. So the compact form and v as 0 or 1, which tokens
 * may take, are refused here: served, they could not be claimed.
 */
function recoverVoucherSigner(
  { channelId, maxClaimableAmount, signature }: Voucher,
  { digests, recoverSigner }: { digests: ChannelDigests; recoverSigner: RecoverSigner },
): Address | undefined {
  if (!hasFullForm(signature)) return undefined;
  const parts = splitSignature(signature);
  if (parts === undefined) return undefined;
  return recoverSigner(digests.voucherDigest(channelId, maxClaimableAmount), parts);
}

function hasFullForm(signature: Hex): boolean {
  const last = signature.slice(130).toLowerCase();
  return signature.length === 132 && (last === "1b" || last === "1c");
}
