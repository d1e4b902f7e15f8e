import type { Address, Hex } from "@coinslot/protocol";
import { keccak256, stringToBytes } from "viem";
import type { ReceiptLog } from "../../evm/transaction-receipt.ts";
import type { Claim, LogOutcome } from "../scheme.ts";

/** `AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)`, EIP-3009. */
export const authorizationUsedTopic = topicOf("AuthorizationUsed(address,bytes32)");
/** `AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)`, EIP-3009. */
export const authorizationCanceledTopic = topicOf("AuthorizationCanceled(address,bytes32)");
/** `Transfer(address indexed from, address indexed to, uint256 value)`, ERC-20. */
const transferTopic = topicOf("Transfer(address,address,uint256)");

/**
 * Reads the outcomes of authorizations from the logs of one transaction. An authorization counts as
 * executed only by its own Transfer, the one that its token emitted for it.
 *
 * The pairing depends on the logs alone, not on the claims: payments of two queries, two processes
 * or two ledgers never share a Transfer. A payer may use up many nonces in one transaction beside
 * one real transfer to the seller.
 */
export function readOutcomes<Item extends Claim>(
  logs: readonly ReceiptLog[],
  claims: readonly Item[],
): Map<Item, LogOutcome> {
  const outcomes = new Map<Item, LogOutcome>(claims.map((each) => [each, "absent"]));
  for (const asset of new Set(claims.map(({ id }) => id.asset))) {
    const transfers = pairTransfers(logs.filter(({ address }) => address === asset));
    for (const claim of claims) {
      if (claim.id.asset !== asset) continue;
      const key = wordOf(claim.id.payer) + claim.id.nonce;
      if (!transfers.has(key)) continue;
      outcomes.set(claim, isExact(transfers.get(key), claim) ? "executed" : "mismatch");
    }
  }
  return outcomes;
}

/**
 * The own Transfer of each `AuthorizationUsed` among the logs of one token, by payer and nonce;
 * `undefined`: none.
 *
 * EIP-3009 leaves the order of the two events open; a token has one order. The Transfer is the next
 * event, as in the EIP's reference implementation, FiatToken and USDT0. It is the previous event
 * only where some authorization has no next one and each has a previous one: no Transfer that a
 * payer adds replaces that of a token of the usual order. Either way no two authorizations share a
 * Transfer.
 */
function pairTransfers(logs: readonly ReceiptLog[]): Map<string, ReceiptLog | undefined> {
  const events = logs.filter(
    ({ topics: [topic] }) => topic === authorizationUsedTopic || topic === transferTopic,
  );
  const next = new Map<string, ReceiptLog | undefined>();
  const previous = new Map<string, ReceiptLog | undefined>();
  for (const [index, { topics }] of events.entries()) {
    const [topic, payer, nonce] = topics;
    if (topic !== authorizationUsedTopic || payer === undefined || nonce === undefined) continue;
    next.set(payer + nonce, transferOf(payer, events[index + 1]));
    previous.set(payer + nonce, transferOf(payer, events[index - 1]));
  }
  return !isComplete(next) && isComplete(previous) ? previous : next;
}

function transferOf(payer: Hex, log: ReceiptLog | undefined): ReceiptLog | undefined {
  const [topic, from] = log?.topics ?? [];
  return topic === transferTopic && from === payer ? log : undefined;
}

function isComplete(pairs: ReadonlyMap<string, ReceiptLog | undefined>): boolean {
  return ![...pairs.values()].includes(undefined);
}

function isExact(own: ReceiptLog | undefined, { authorization: { to, value } }: Claim): boolean {
  return own?.topics[2] === wordOf(to) && own.data === uintHex(value);
}

/** An address as it stands in a topic. */
export function wordOf(address: Address): Hex {
  return `0x${address.slice(2).padStart(64, "0")}`;
}

function uintHex(value: bigint): string {
  return `0x${value.toString(16).padStart(64, "0")}`;
}

function topicOf(event: string): Hex {
  return keccak256(stringToBytes(event));
}
