import type { RefundRecord } from "@coinslot/facilitator";
import { type Address, toLowerHex } from "@coinslot/protocol";
import { isAddressEqual } from "viem";
import type { ChainRecord } from "./chain-record.ts";
import { price } from "./purchase.ts";
import type { AskedRefund } from "./support.ts";

/** Refunds of a finished run. */
export interface RefundEvidence {
  asked: readonly AskedRefund[];
  /** The ledger's. */
  refunds: readonly RefundRecord[];
  float: Address;
  chain: ChainRecord;
}

/** Violations: money given back twice, to a wrong account, too much, or not at all. */
export function findRefundViolations(evidence: RefundEvidence): string[] {
  const { asked, refunds, float, chain } = evidence;
  const executed = chain.authorizedBy(float);
  const known = new Map(refunds.map((refund) => [refund.id, refund]));
  const wanted = new Set(asked.flatMap((each) => [...each.refunds]));
  return [
    ...asked.flatMap((each) => judgeAsked(each, known)),
    ...judgeExcess(asked, known),
    ...refunds.flatMap((refund) => judgeRefund(refund, executed.get(toLowerHex(refund.nonce)))),
    ...refunds.filter(({ id }) => !wanted.has(id)).map(({ id }) => `refund ${id}: nobody asked`),
    ...(executed.size === chain.transfersFrom(float)
      ? []
      : [`the float paid ${chain.transfersFrom(float)} times, for ${executed.size} refunds`]),
    ...(executed.size === refunds.filter(({ state }) => state === "final").length
      ? []
      : [`the chain has ${executed.size} refunds, the ledger others`]),
  ];
}

/** One request: its answers named one refund, of its amount, or one refusal. */
function judgeAsked(
  { purchase, plan, key, amount, refunds, refusal }: AskedRefund,
  known: ReadonlyMap<string, RefundRecord>,
): string[] {
  const problems: string[] = [];
  const tell = (problem: string) => problems.push(`${plan} refund ${key}: ${problem}`);
  if (refunds.size > 1) tell(`one key began ${refunds.size} refunds`);
  if (refunds.size > 0 && refusal !== undefined) tell(`begun, and refused: ${refusal}`);
  const isExcess = amount !== undefined && (amount === 1n || amount > price);
  const expected = amount === 1n ? "nothing_left" : "exceeds_payment";
  if (isExcess && refusal !== expected) tell(`too much, and answered ${refusal}`);
  if (!isExcess && refunds.size === 0) tell(`refused: ${refusal}`);
  for (const id of refunds) {
    const refund = known.get(id);
    if (refund === undefined) tell(`refund ${id} is lost`);
    else if (refund.amount !== (amount ?? price)) tell(`it gives ${refund.amount} back`);
    else if (!isAddressEqual(refund.payer, purchase.payer.address)) tell("it pays another account");
  }
  return problems;
}

/** All refunds of one payment give back no more than was paid. */
function judgeExcess(
  asked: readonly AskedRefund[],
  known: ReadonlyMap<string, RefundRecord>,
): string[] {
  const sums = new Map<number, bigint>();
  for (const { purchase, refunds } of asked) {
    for (const id of refunds) {
      const amount = known.get(id)?.amount ?? 0n;
      sums.set(purchase.number, (sums.get(purchase.number) ?? 0n) + amount);
    }
  }
  return [...sums].flatMap(([number, sum]) =>
    sum > price ? [`purchase ${number}: ${sum} given back of ${price}`] : [],
  );
}

/** One refund of the ledger beside the chain. */
function judgeRefund(
  { id, state, cause, payer, amount, transactionHash }: RefundRecord,
  executed: ReturnType<ChainRecord["authorizedBy"]> extends ReadonlyMap<string, infer Transfer>
    ? Transfer | undefined
    : never,
): string[] {
  if (state === "void") {
    if (executed !== undefined) return [`refund ${id}: void, and paid by ${executed.hash}`];
    // A reorganisation took the payment back, and it was never executed again.
    return cause === "payment_not_executed" ? [] : [`refund ${id}: void by ${cause}`];
  }
  if (state !== "final") return [`refund ${id}: still ${state}, ${cause ?? "no cause"}`];
  if (executed === undefined) return [`refund ${id}: final in the ledger, not on the chain`];
  const isExact = isAddressEqual(executed.to, payer) && executed.value === amount;
  if (!isExact) return [`refund ${id}: the chain moved ${executed.value} to ${executed.to}`];
  return executed.hash === transactionHash
    ? []
    : [`refund ${id}: the ledger says ${transactionHash}, the chain ${executed.hash}`];
}
