import {
  type Address,
  channelSettlementAbi,
  claimBatchTypedData,
  type Hex,
} from "@coinslot/protocol";
import { encodeFunctionData, hashTypedData } from "viem";
import { insertClaims } from "../../ledger/channels/channel-claims.ts";
import { callByRelayer } from "../../settle/call-by-relayer.ts";
import type { CallOutcome } from "../../settle/plan/send-calls.ts";
import { gasLimitOf } from "../../settle/relay/gas.ts";
import { SignerError } from "../../settle/relay/relayer-signer.ts";
import type { ClaimSigner } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import type { ClaimCandidate } from "./choose-claims.ts";
import { rowOf } from "./try-claims.ts";

/** Gas of a claim beside its rows: signature, reentrancy guard, proxies. */
const claimGas = 40_000n;
/** Gas of a row: 24,000 measured, with its calldata. */
const rowGas = 30_000n;
/** Gas of a receiver's first claim. */
const receiverGas = 25_000n;

/** `no_signature`: the key of the claims is elsewhere, and has not signed. Nothing was written. */
export type ClaimOutcome = CallOutcome | "no_signature";

/**
 * Signs rows of one authorizer as a claim, stores them with their transaction, and sends it.
 * Nothing leaves this process before it is on the disk.
 *
 * @throws RpcError, DatabaseError
 */
export async function sendClaims(
  { context: { ledger, logger }, settlement, place }: ChannelsContext,
  signer: ClaimSigner,
  rows: readonly ClaimCandidate[],
): Promise<ClaimOutcome> {
  const { network, contract } = place;
  const entries = rows.map(({ channel, voucher, totalClaimed }) => ({
    channelId: channel.channelId,
    maxClaimableAmount: voucher.ceiling,
    totalClaimed,
  }));
  let signature: Hex;
  try {
    signature = await signer.sign(hashTypedData(claimBatchTypedData(entries, place)));
  } catch (err) {
    if (!(err instanceof SignerError)) throw err;
    // The rows of other keys do not wait for it.
    logger.error({ err, network, authorizer: signer.address }, "a claim could not be signed");
    return "no_signature";
  }
  const data = encodeClaim(rows, signature);
  const claims = rows.map(({ channel: { channelId }, voucher, totalClaimed }) => ({
    network,
    contract,
    channelId,
    totalClaimed,
    ...voucher,
  }));
  return callByRelayer(settlement, {
    to: contract,
    data,
    gasLimit: gasLimitOf(data, gasOfClaims(rows)),
    isUrgent: rows.some(({ deadline }) => deadline !== undefined),
    alongside: (transaction, transactionId) =>
      insertClaims(ledger, transaction, { transactionId, claims }),
  });
}

/** Gas of a claim's rows, without its calldata. */
export function gasOfClaims(rows: readonly Pick<ClaimCandidate, "config">[]): bigint {
  const receivers = new Set(rows.map(({ config }) => `${config.receiver}/${config.token}`));
  return claimGas + rowGas * BigInt(rows.length) + receiverGas * BigInt(receivers.size);
}

function encodeClaim(rows: readonly ClaimCandidate[], signature: Hex): Hex {
  return encodeFunctionData({
    abi: channelSettlementAbi,
    functionName: "claimWithSignature",
    args: [rows.map(rowOf), signature],
  });
}

/** Rows by their authorizer: a claim has one. */
export function byAuthorizer(rows: readonly ClaimCandidate[]): Map<Address, ClaimCandidate[]> {
  const groups = new Map<Address, ClaimCandidate[]>();
  for (const row of rows) {
    const { receiverAuthorizer } = row.config;
    groups.set(receiverAuthorizer, [...(groups.get(receiverAuthorizer) ?? []), row]);
  }
  return groups;
}
