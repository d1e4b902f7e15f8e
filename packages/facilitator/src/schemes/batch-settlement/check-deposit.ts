import {
  type Address,
  type ChannelRefusalReason,
  channelContracts,
  channelSettlementAbi,
  type DepositTerms,
  depositNonce,
  depositTypedData,
  encodeCollectorData,
  type Hex,
  type Network,
  type PresentedDeposit,
  type PresentedVoucher,
} from "@coinslot/protocol";
import { encodeFunctionData, hashTypedData, hexToBytes } from "viem";
import type { RecoverSigner } from "../../evm/recover-signer.ts";
import { splitSignature } from "../../evm/split-signature.ts";

/** A deposit whose terms and times are good, as it goes to the chain. */
export interface CheckedDeposit {
  /** Of the authorization. */
  nonce: Hex;
  amount: bigint;
  /** Unix seconds. */
  validBefore: bigint;
  /** The call of the escrow that executes it, for any sender. */
  data: Hex;
  /** False: only code of the payer can accept this signature. */
  isByKey: boolean;
}

/** As the reference: what is valid for less may not come into a block in time. */
const leadSeconds = 6n;
/** Longest signature of a payer with code; an ordinary one has 65 bytes. */
const maxSignatureBytes = 1_024;

/**
 * Checks a deposit without the chain, in the order of the public specification. Its voucher was
 * checked. Deposits by Permit2 are refused: none is executed here.
 *
 * @returns the first reason against it
 */
export function checkDeposit(
  { channelConfig: config, voucher: { channelId } }: PresentedVoucher,
  options: {
    deposit: PresentedDeposit;
    terms: DepositTerms;
    network: Network;
    /** Unix milliseconds. */
    now: number;
    recoverSigner: RecoverSigner;
    collector?: Address | undefined;
  },
): CheckedDeposit | ChannelRefusalReason {
  const { deposit, terms, network, now, recoverSigner } = options;
  const { collector = channelContracts.erc3009Collector } = options;
  const { amount, authorization } = deposit;
  const { erc3009Authorization: signed } = authorization;
  if (signed === undefined) return "invalid_batch_settlement_evm_erc3009_authorization_required";
  if (amount < terms.minDeposit || amount === 0n) {
    return "invalid_batch_settlement_evm_deposit_below_min_deposit";
  }
  const { validAfter, validBefore, salt, signature } = signed;
  const seconds = BigInt(Math.floor(now / 1_000));
  if (validBefore < seconds + leadSeconds) {
    return "invalid_batch_settlement_evm_payload_authorization_valid_before";
  }
  if (validAfter > seconds) return "invalid_batch_settlement_evm_payload_authorization_valid_after";
  const { token, payer } = config;
  const { domain } = terms;
  const times = { validAfter, validBefore, salt };
  const message = { network, token, domain, payer, channelId, amount, collector, ...times };
  const key = splitSignature(signature);
  const digest = hexToBytes(hashTypedData(depositTypedData(message)));
  const isByKey = key !== undefined && recoverSigner(digest, key) === payer;
  if (signature.length > 2 + 2 * maxSignatureBytes) {
    return "invalid_batch_settlement_evm_receive_authorization_signature";
  }
  const collectorData = encodeCollectorData({ ...times, signature });
  const args = [config, amount, collector, collectorData] as const;
  return {
    nonce: depositNonce({ channelId, salt }),
    amount,
    validBefore,
    data: encodeFunctionData({ abi: channelSettlementAbi, functionName: "deposit", args }),
    isByKey,
  };
}
