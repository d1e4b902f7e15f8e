import { maxHandlerRuns, toLowerHex } from "@coinslot/protocol";
import { type Hex, keccak256, parseTransaction } from "viem";
import type { Bought } from "./buyer.ts";
import type { ChainRecord } from "./chain-record.ts";
import { isUnderWay } from "./ledger-at-rest.ts";
import { failsOnce, type Purchase } from "./purchase.ts";
import type { ListedPayment } from "./worker-messages.ts";

/** The last answers to a credential whose money has moved, other than the content. */
const endsOfPaid: ReadonlySet<string> = new Set([
  "invalid_exact_evm_nonce_already_used",
  "payment_used_up",
  "answer_not_kept",
]);

/** Records of a finished run. */
export interface Evidence {
  chain: ChainRecord;
  ledger: readonly ListedPayment[];
  bought: readonly Bought[];
  /** For each path the processes in which its handler ran, once for each run. */
  runs: ReadonlyMap<string, readonly number[]>;
  /** Number of refused settlements by nonce, as the sellers report them. */
  refusedSettlements?: ReadonlyMap<string, number>;
  /** Every signed transaction that reached the proxy. */
  broadcasts: readonly Hex[];
  /** Hashes of transactions whose block a reorganisation replaced. */
  replaced: ReadonlySet<string>;
}

/** Violations. Empty when nothing was lost, given away or taken twice. */
export function findViolations(evidence: Evidence): string[] {
  const listed = new Map(
    evidence.ledger.map((payment) => [toLowerHex(payment.nonce), payment] as const),
  );
  return [
    ...evidence.bought.flatMap((each) => judgePurchase(each, evidence, listed)),
    ...judgePayers(evidence),
    ...judgeLedger(evidence.ledger),
    ...judgeRelayer(evidence),
  ];
}

/** One purchase: the buyer's answer, the chain's transfer, and the ledger's state. */
function judgePurchase(
  bought: Bought,
  { chain, runs, replaced, refusedSettlements = new Map() }: Evidence,
  listed: ReadonlyMap<string, ListedPayment>,
): string[] {
  const { purchase, outcome } = bought;
  const { number, path, hasKey, authorization, wire, flow } = purchase;
  const problems: string[] = [];
  const tell = (problem: string) => problems.push(`purchase ${number}: ${problem}`);
  const nonce = toLowerHex(authorization.nonce);
  const payment = listed.get(nonce);
  const executions = chain.executionsOf(purchase);
  const isPaid = executions.length > 0;
  // By MPP no receipt tells the buyer of a run in vain.
  const runsInVain = wire === "mpp" && flow === "authorization" ? refusedSettlements.get(nonce) : 0;
  const interruptions = bought.interruptions + (runsInVain ?? 0);

  if (executions.length > 1) tell(`the chain moved its money ${executions.length} times`);
  if (payment?.state === "confirmed" && !isPaid) tell("confirmed in the ledger, not on the chain");
  if (isPaid && payment?.state !== "confirmed" && !mayBeUnknown(purchase)) {
    tell(`paid on the chain, ${payment?.state ?? "unknown"} in the ledger`);
  }
  if (payment?.state === "confirmed" && isPaid && payment.transactionHash !== executions[0]) {
    tell(`the ledger says ${payment.transactionHash}, the chain says ${executions[0]}`);
  }
  if (outcome.kind === "served") {
    // Served when included: the seller accepts the risk of a reorganisation.
    const wasUndone = replaced.has(outcome.transaction);
    if (outcome.content !== JSON.stringify({ report: path })) tell("foreign content went out");
    if (!isPaid && !(wasUndone && purchase.interference !== "none"))
      tell("content went out unpaid");
    if (isPaid && outcome.transaction !== executions[0] && !wasUndone) {
      tell(`its receipt names ${outcome.transaction}, the chain ${executions[0]}`);
    }
  }
  if (outcome.kind === "gave up") tell(`its buyer never got an answer: ${outcome.why}`);
  // Two processes have died with it, or the buyer has left: it was not charged, and signs another.
  const isUsedUp =
    outcome.kind === "refused" &&
    outcome.reason === "payment_used_up" &&
    interruptions >= maxHandlerRuns;
  const ran = runs.get(path) ?? [];
  // `upfront` charges first. Its handler failed by itself. That was its one run, if the deaths
  // before it had used up the others. Or it had as many runs as any buyer who has paid may have.
  const isSpentUpfront =
    isUsedUp &&
    flow === "upfront" &&
    failsOnce(purchase) &&
    (ran.length === 1 || interruptions + 1 >= 2 * maxHandlerRuns);
  if (
    outcome.kind === "refused" &&
    isPaid &&
    hasKey &&
    !mayBeUnknown(purchase) &&
    !isSpentUpfront
  ) {
    tell(`paid with a key, and refused: ${outcome.reason}`);
  }
  if (outcome.kind === "refused" && !isPaid && !isUsedUp && purchase.interference === "none") {
    tell(`an honest buyer was refused: ${outcome.reason}`);
  }
  if (outcome.kind === "refused" && isPaid && !hasKey && interruptions === 0) {
    if (!mayBeUnknown(purchase) && !purchase.isTwin) tell(`paid, and refused: ${outcome.reason}`);
  }
  for (const fault of bought.faults) tell(fault);
  if (wire === "mpp" && outcome.kind === "refused" && isPaid && !mayBeUnknown(purchase)) {
    // A buyer by MPP signs again at 402, so it may come only where the answer has gone out.
    if (!endsOfPaid.has(outcome.reason)) tell(`its money moved, and it was asked for more`);
  }
  if (bought.wasRobbed) tell("an observer was given the content");
  if (ran.length > 1 + interruptions) {
    tell(`its handler ran ${ran.length} times, with ${interruptions} interruptions`);
  }
  // A buyer who has paid may have two more, each after the death of a process.
  if (ran.length > (isPaid ? 2 * maxHandlerRuns : maxHandlerRuns)) {
    tell(`its handler ran ${ran.length} times over all processes`);
  }
  const ofOneProcess = Math.max(0, ...ran.map((pid) => ran.filter((each) => each === pid).length));
  if (ofOneProcess > maxHandlerRuns) {
    tell(`one process ran its handler ${ofOneProcess} times`);
  }
  return problems;
}

/**
 * A third party may execute a payment before the seller has received it; then it is not checked.
 */
function mayBeUnknown({ interference }: Purchase): boolean {
  return interference === "submitted";
}

/** The seller's income equals the purchases executed on the chain. */
function judgePayers({ bought, chain }: Evidence): string[] {
  const expected = new Map<Hex, number>();
  for (const { purchase } of bought) {
    const { address } = purchase.payer;
    const count = chain.executionsOf(purchase).length;
    expected.set(address, (expected.get(address) ?? 0) + count);
  }
  return [...expected].flatMap(([payer, count]) => {
    const moved = chain.transfersToSeller(payer);
    return moved === count ? [] : [`payer ${payer} paid ${moved} times for ${count} purchases`];
  });
}

function judgeLedger(ledger: readonly ListedPayment[]): string[] {
  return ledger.flatMap(({ nonce, state, isFinal }) => {
    if (isUnderWay(state)) return [`authorization ${nonce} is still ${state}`];
    if (state === "confirmed" && !isFinal) return [`authorization ${nonce} never became final`];
    return [];
  });
}

/** Nonces follow one another, and each was used for one purpose. */
function judgeRelayer({ broadcasts, chain }: Evidence): string[] {
  const problems: string[] = [];
  const purposes = new Map<number, Set<Hex>>();
  for (const raw of broadcasts) {
    const { nonce = 0, data } = parseTransaction(raw);
    const known = purposes.get(nonce) ?? new Set();
    purposes.set(nonce, known);
    // Without calldata it only uses its nonce up, which is harmless.
    if (data !== undefined && data !== "0x") known.add(keccak256(data));
  }
  for (const [nonce, { size }] of purposes) {
    if (size > 1) problems.push(`nonce ${nonce} was used for ${size} different transactions`);
  }
  const highest = Math.max(-1, ...purposes.keys());
  if (highest + 1 !== chain.nonce) {
    problems.push(`nonces up to ${highest} were sent, and the chain is at ${chain.nonce}`);
  }
  if (chain.waiting > 0) problems.push(`${chain.waiting} transactions still wait in the mempool`);
  return problems;
}
