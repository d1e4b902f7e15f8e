import type { VoucherAnswer } from "./ask-seller.ts";
import type { ChannelAccount } from "./channel-account.ts";
import { amountsOf, type PlannedVoucher } from "./voucher-plan.ts";

/** The buyer's knowledge of its channel. Amounts are in the token's smallest unit. */
export interface ChannelBook extends ChannelAccount {
  /** The sum that the next ceiling builds on. */
  base: bigint;
  /** All sums that may be charged by now: more than one while an answer or its end is unknown. */
  possible: ReadonlySet<bigint>;
  /** The highest ceiling that was signed. */
  signed: bigint;
  /** The payer has begun to withdraw: a seller may refuse. */
  mayBeRefused: boolean;
  faults: string[];
}

/** Notes the sums that an answer leaves possible, and each lie in it. */
export function noteAnswer(
  book: ChannelBook,
  voucher: PlannedVoucher,
  answer: VoucherAnswer,
  fault: (words: string) => void,
): void {
  const { base } = book;
  const amounts = amountsOf(voucher);
  const sums = amounts.map((each) => base + each);
  if (answer.kind === "again" && answer.mayBeCharged) {
    book.possible = new Set([...book.possible, ...sums]);
  }
  if (answer.kind !== "served") return;
  const { charged, cumulative, content } = answer;
  if (content !== JSON.stringify({ report: voucher.path })) fault("foreign content went out");
  if (!amounts.includes(charged)) fault(`was charged ${charged}`);
  if (cumulative !== base + charged) {
    fault(`was charged ${charged} on ${base}, and its receipt says ${cumulative}`);
  }
  // A voucher that has charged nothing may have bought another resource, too.
  book.possible = new Set([...sums, ...(amounts.includes(0n) ? book.possible : [])]);
}

/** Notes that one voucher has bought two resources: only where one of them was free. */
export function noteBoth(
  book: ChannelBook,
  amounts: readonly [readonly bigint[], readonly bigint[]],
  fault: (words: string) => void,
): void {
  const [first, second] = amounts;
  if (!first.includes(0n) && !second.includes(0n)) fault("one voucher bought twice");
  book.possible = new Set(first.flatMap((a) => second.map((b) => book.base + a + b)));
}

/** Notes the sum that a seller proves. A lowered charge may still be on its way. */
export function noteCorrection(
  book: ChannelBook,
  charged: bigint,
  fault: (words: string) => void,
): void {
  if (!book.possible.has(charged)) {
    fault(`was corrected to ${charged}, and ${[...book.possible].join(" or ")} is charged`);
    book.possible = new Set([charged]);
  }
  book.base = charged;
}
