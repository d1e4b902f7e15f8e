import type { ChannelBuyer } from "./channel-buyer.ts";
import type { EscrowRecord, RecordedChannel } from "./channel-record.ts";
import type { LedgerChannel, LedgerOfChannels } from "./ledger-of-channels.ts";

/** Records of a finished run. */
export interface ChannelEvidence {
  buyers: readonly ChannelBuyer[];
  ledger: LedgerOfChannels;
  escrow: EscrowRecord;
  /** Number of runs of the handler, by path. */
  runs: ReadonlyMap<string, readonly number[]>;
}

/** Violations. Empty where nothing was lost, given away or taken twice. */
export function findChannelViolations(evidence: ChannelEvidence): string[] {
  const { buyers, ledger, escrow } = evidence;
  const rows = new Map(ledger.channels.map((each) => [each.channelId, each]));
  return [
    ...buyers.flatMap((buyer) => [
      ...buyer.book.faults,
      ...judgeSums(buyer, rows.get(buyer.book.channelId), evidence),
      ...judgeWithdrawals(buyer, escrow.channels.get(buyer.book.channelId)),
      ...judgeRuns(buyer, evidence.runs),
    ]),
    ...judgeRest(evidence),
  ];
}

/** Claimed = charged <= signed, and charged is what the buyer was served for. */
function judgeSums(
  { book, bought }: ChannelBuyer,
  row: LedgerChannel | undefined,
  { escrow }: ChannelEvidence,
): string[] {
  const problems: string[] = [];
  const tell = (words: string) => problems.push(`channel ${book.channelId}: ${words}`);
  const onChain = escrow.channels.get(book.channelId);
  if (onChain === undefined) tell("is not on the chain");
  if (row === undefined) {
    if (bought.some(({ outcome }) => outcome === "served")) tell("is not in the ledger");
    return problems;
  }
  const { charged, ceiling, lost } = row;
  if (!book.possible.has(charged)) {
    tell(`the ledger has charged ${charged}, the buyer was served ${[...book.possible]}`);
  }
  if (charged > book.signed) tell(`charged ${charged}, and ${book.signed} was signed`);
  if (ceiling < charged) tell(`its voucher covers ${ceiling} of ${charged}`);
  if (lost > 0n) tell(`${lost} is lost`);
  if (onChain !== undefined && onChain.totalClaimed !== charged) {
    tell(`${charged} is charged, and ${onChain.totalClaimed} claimed`);
  }
  for (const claim of onChain?.claims ?? []) {
    if (claim.totalClaimed > charged) tell(`${claim.totalClaimed} was claimed of ${charged}`);
  }
  return problems;
}

/**
 * Charges from before a withdrawal that stood in its amount were claimed before its delay ended.
 */
function judgeWithdrawals(
  { book, withdrawals }: ChannelBuyer,
  onChain: RecordedChannel | undefined,
): string[] {
  // A reorganisation may have taken one back for good. Those before it have ended.
  const [begun] = withdrawals;
  const [seen] = onChain?.withdrawals ?? [];
  if (begun === undefined || seen === undefined || onChain === undefined) return [];
  const left = seen.balance - seen.amount;
  if (begun.charged <= left || begun.charged <= seen.totalClaimed) return [];
  const inTime = onChain.claims.some(
    ({ totalClaimed, time }) => totalClaimed >= begun.charged && time <= seen.finalizeAfter,
  );
  if (inTime) return [];
  return [
    `channel ${book.channelId}: ${begun.charged} was not claimed before its withdrawal ended`,
  ];
}

/** No content without a run, and no run without a request for it. */
function judgeRuns(
  { bought }: ChannelBuyer,
  runs: ReadonlyMap<string, readonly number[]>,
): string[] {
  return bought.flatMap(({ voucher, outcome, mayHaveRun }) => {
    const count = runs.get(voucher.path)?.length ?? 0;
    const named = `purchase ${voucher.number}`;
    if (outcome === "served" && count === 0 && voucher.twin !== "other") {
      return [`${named}: was served, and its handler never ran`];
    }
    return count > mayHaveRun ? [`${named}: ran ${count} times for ${mayHaveRun} requests`] : [];
  });
}

/** All is claimed and settled, and the relayer has nothing left. */
function judgeRest({ ledger, escrow }: ChannelEvidence): string[] {
  const problems: string[] = [];
  if (ledger.dues > 0) problems.push(`${ledger.dues} channels are still due`);
  if (ledger.sentClaims > 0) problems.push(`${ledger.sentClaims} claims have no end`);
  if (ledger.moving > 0) problems.push(`${ledger.moving} channels never became final`);
  const charged = ledger.channels.reduce((sum, each) => sum + each.charged, 0n);
  const { claimed, settled, arrived, waiting } = escrow;
  const sums = new Set([charged, claimed, settled, arrived]);
  if (sums.size > 1) {
    problems.push(`charged ${charged}, claimed ${claimed}, settled ${settled}, arrived ${arrived}`);
  }
  if (waiting > 0) problems.push(`${waiting} transactions still wait in the mempool`);
  return problems;
}
