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

interface Move {
  index: number;
  from: string;
  to: string;
  value: string;
  isClaimed: boolean;
}

/**
 * Reads the outcomes of authorizations from the logs of one transaction. Each `AuthorizationUsed`,
 * in log order, claims one exact `Transfer` of the same token: the first unclaimed one after it,
 * and, since the EIP leaves the order open, else the last unclaimed one before it.
 *
 * Each Transfer is claimed once, also by authorizations outside this query. Two equal payments of
 * one payer, of which the token executed one, must not both find the one Transfer.
 */
export function readOutcomes<Item extends Claim>(
  logs: readonly ReceiptLog[],
  claims: readonly Item[],
): Map<Item, LogOutcome> {
  const outcomes = new Map<Item, LogOutcome>(claims.map((each) => [each, "absent"]));
  for (const asset of new Set(claims.map(({ id }) => id.asset))) {
    readToken(
      logs.filter(({ address }) => address === asset),
      new Map(claims.filter(({ id }) => id.asset === asset).map((each) => [keyOf(each), each])),
      outcomes,
    );
  }
  return outcomes;
}

function readToken<Item extends Claim>(
  logs: readonly ReceiptLog[],
  wanted: ReadonlyMap<string, Item>,
  outcomes: Map<Item, LogOutcome>,
): void {
  const moves = logs.flatMap((log, index) => readMove(log, index) ?? []);
  const movesByPayer = new Map<string, Move[]>();
  for (const move of moves) {
    const known = movesByPayer.get(move.from);
    if (known) known.push(move);
    else movesByPayer.set(move.from, [move]);
  }
  for (const [index, { topics }] of logs.entries()) {
    const [topic, payerWord, nonce] = topics;
    if (topic !== authorizationUsedTopic || payerWord === undefined || nonce === undefined)
      continue;
    const want = wanted.get(payerWord + nonce);
    const fits = (move: Move) =>
      !move.isClaimed &&
      (want === undefined ||
        (move.to === wordOf(want.authorization.to) &&
          move.value === uintHex(want.authorization.value)));
    const own = movesByPayer.get(payerWord) ?? [];
    const claimed =
      own.find((move) => move.index > index && fits(move)) ??
      own.findLast((move) => move.index < index && fits(move));
    if (claimed) claimed.isClaimed = true;
    if (want) outcomes.set(want, claimed ? "executed" : "mismatch");
  }
}

function readMove({ topics, data }: ReceiptLog, index: number): Move | undefined {
  const [topic, from, to] = topics;
  if (topic !== transferTopic || from === undefined || to === undefined) return undefined;
  return { index, from, to, value: data, isClaimed: false };
}

function keyOf({ id }: Claim): string {
  return wordOf(id.payer) + id.nonce;
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
