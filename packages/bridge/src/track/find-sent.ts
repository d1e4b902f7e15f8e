import {
  type Address,
  type Hex,
  isAddressEqual,
  parseEventLogs,
  type TransactionReceipt,
} from "viem";
import { BridgeError } from "../bridge-error.ts";
import { oftAbi } from "../chains/oft-abi.ts";

/** An OFT's event for a transfer that has left. */
export interface SentTransfer {
  contract: Address;
  guid: Hex;
  dstEid: number;
  amountSent: bigint;
  amountReceived: bigint;
}

/**
 * The transfer that a transaction has sent through one of `contracts`. Other contracts may emit the
 * same event, and are not believed.
 *
 * @throws BridgeError `send_reverted`, `not_a_transfer`
 */
export function findSent(receipt: TransactionReceipt, contracts: readonly Address[]): SentTransfer {
  const hash = receipt.transactionHash;
  if (receipt.status === "reverted") {
    const text = `The transaction ${hash} reverted: no token has moved`;
    throw new BridgeError("send_reverted", text, { hash });
  }
  const sent = parseEventLogs({ abi: oftAbi, eventName: "OFTSent", logs: receipt.logs }).filter(
    (log) => contracts.some((contract) => isAddressEqual(contract, log.address)),
  );
  const [log] = sent;
  if (log === undefined || sent.length > 1) {
    const text = `The transaction ${hash} has sent ${sent.length} transfers, not one`;
    throw new BridgeError("not_a_transfer", text, { hash });
  }
  const { guid, dstEid, amountSentLD, amountReceivedLD } = log.args;
  return {
    contract: log.address,
    guid,
    dstEid,
    amountSent: amountSentLD,
    amountReceived: amountReceivedLD,
  };
}
