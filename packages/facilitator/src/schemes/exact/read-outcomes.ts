import type { Address, AuthorizationId, Hex } from "@coinslot/protocol";
import { topicOf } from "../../evm/topic-of.ts";
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
 * The pairing depends on the logs alone, not on the claims. Payments of two queries, two processes
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

/** The own Transfer of an authorization, whatever its amount and recipient. */
export function readTransfer(
  logs: readonly ReceiptLog[],
  { asset, payer, nonce }: AuthorizationId,
): { to: Address; value: bigint } | undefined {
  const own = pairTransfers(logs.filter(({ address }) => address === asset)).get(
    wordOf(payer) + nonce,
  );
  const to = own?.topics[2];
  if (own === undefined || to === undefined || !/^0x[0-9a-f]{64}$/.test(own.data)) return undefined;
  return { to: `0x${to.slice(-40)}`, value: BigInt(own.data) };
}

/**
 * The own Transfer of each `AuthorizationUsed` among the logs of one token, by payer and nonce;
 * `undefined`: none. No two authorizations share a Transfer.
 */
function pairTransfers(logs: readonly ReceiptLog[]): Map<string, ReceiptLog | undefined> {
  const eventsByPayer = new Map<Hex, ReceiptLog[]>();
  for (const log of logs) {
    const [topic, payer] = log.topics;
    if (topic !== authorizationUsedTopic && topic !== transferTopic) continue;
    if (payer === undefined) continue;
    const known = eventsByPayer.get(payer);
    if (known) known.push(log);
    else eventsByPayer.set(payer, [log]);
  }
  const pairs = new Map<string, ReceiptLog | undefined>();
  for (const [payer, events] of eventsByPayer) {
    for (const [nonce, own] of pairTransfersOfPayer(events)) pairs.set(payer + nonce, own);
  }
  return pairs;
}

/**
 * The same for the events of one payer, by nonce: no other payer's events change them.
 *
 * EIP-3009 leaves the order of the two events open; a token has one order. The Transfer is the next
 * event, as in the EIP's reference implementation, FiatToken and USDT0. It is the previous event
 * only where some authorization has no next one and each has a previous one. So no Transfer that a
 * payer adds replaces that of a token of the usual order.
 *
 * With a token of the other order, a sender may execute another's authorization. A `transferFrom`
 * of nothing behind it then hides its Transfer.
 */
function pairTransfersOfPayer(events: readonly ReceiptLog[]): Map<Hex, ReceiptLog | undefined> {
  const next = new Map<Hex, ReceiptLog | undefined>();
  const previous = new Map<Hex, ReceiptLog | undefined>();
  for (const [index, { topics }] of events.entries()) {
    const [topic, , nonce] = topics;
    if (topic !== authorizationUsedTopic || nonce === undefined) continue;
    next.set(nonce, transferOnly(events[index + 1]));
    previous.set(nonce, transferOnly(events[index - 1]));
  }
  return !isComplete(next) && isComplete(previous) ? previous : next;
}

function transferOnly(log: ReceiptLog | undefined): ReceiptLog | undefined {
  return log?.topics[0] === transferTopic ? log : undefined;
}

function isComplete(pairs: ReadonlyMap<Hex, ReceiptLog | undefined>): boolean {
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
