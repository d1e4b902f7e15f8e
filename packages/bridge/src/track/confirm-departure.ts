import { type Address, type Hash, type Hex, isAddressEqual, type PublicClient } from "viem";
import { type ChainNode, isWitnessed } from "../chains/witnesses.ts";
import { readPeer } from "../quote/read-peer.ts";
import { findSent, type SentTransfer } from "./find-sent.ts";
import { readReceipt } from "./read-receipt.ts";

/** A departure as the first node has it. */
export interface ExpectedDeparture {
  hash: Hash;
  /** Contracts through which it may have left. */
  contracts: readonly Address[];
  sent: SentTransfer;
  sourceBlock: bigint;
  /** The contract on the target chain, in 32 bytes. */
  peer: Hex;
}

/**
 * Returns whether nodes of two hosts have the same message in a transfer's transaction. The
 * contract on the target chain has to be the same, too. One node alone could show a stranger's
 * message, which has really arrived.
 */
export function isDeparted(
  nodes: readonly ChainNode[],
  expected: ExpectedDeparture,
): Promise<boolean> {
  return isWitnessed(nodes, (client) => hasDeparture(client, expected));
}

async function hasDeparture(
  client: PublicClient,
  { hash, contracts, sent, sourceBlock, peer }: ExpectedDeparture,
): Promise<boolean> {
  const { contract, dstEid } = sent;
  const [receipt, actualPeer] = await Promise.all([
    readReceipt(client, hash),
    readPeer(client, { contract, eid: dstEid }),
  ]);
  if (receipt === undefined || receipt.blockNumber !== sourceBlock) return false;
  const actual = findSent(receipt, contracts);
  return (
    actual.guid === sent.guid &&
    isAddressEqual(actual.contract, contract) &&
    actual.dstEid === dstEid &&
    actual.amountSent === sent.amountSent &&
    actualPeer === peer
  );
}
