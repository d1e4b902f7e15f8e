import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@coinslot/facilitator";
import type { PaymentRequirements } from "@coinslot/protocol";
import { askSeller, type VoucherAnswer } from "./ask-seller.ts";
import type { ChannelBank } from "./channel-account.ts";
import { type ChannelBook, noteAnswer, noteBoth, noteCorrection } from "./channel-book.ts";
import { smallestOf } from "./sums.ts";
import { amountsOf, otherOffset, type PlannedVoucher, pathOf, price } from "./voucher-plan.ts";

/** End of a purchase: `lost` was charged, and its answer is not to be had again. */
export interface BoughtVoucher {
  voucher: PlannedVoucher;
  outcome: "served" | "refused" | "lost" | "gave up";
  attempts: number;
  /** Answers after which the handler may have run. */
  mayHaveRun: number;
}

/** Everything that purchases of all channels share. */
export interface Market {
  bank: ChannelBank;
  offers: Readonly<Record<PlannedVoucher["flow"], PaymentRequirements>>;
  /** The URL of a living seller. Waits for one. */
  sellerUrl: () => Promise<string>;
  /** Aborts buyers who still have no answer. */
  signal: AbortSignal;
  log: Logger;
}

/** A purchase that is under way. */
interface Buying {
  market: Market;
  book: ChannelBook;
  voucher: PlannedVoucher;
  attempts: number;
  mayHaveRun: number;
  /** An answer is lost that may have been charged. */
  mayBeLost: boolean;
  /** The sums that could be charged before it began. */
  before: ReadonlySet<bigint>;
  fault: (words: string) => void;
}

/** New ceilings of one purchase, at most: a seller that corrects more often is at fault. */
const maxRounds = 40;
const correctedPauseMs = 100;

/**
 * Buys once by a channel, as a real buyer does: it sends the same request until there is an answer,
 * and signs anew where the seller proves another sum. It notes each answer that no honest seller
 * gives.
 */
export async function buyVoucher(
  market: Market,
  book: ChannelBook,
  voucher: PlannedVoucher,
): Promise<BoughtVoucher> {
  const buying: Buying = {
    ...{ market, book, voucher, attempts: 0, mayHaveRun: 0 },
    ...{ mayBeLost: false, before: book.possible },
    fault: (words) => {
      book.faults.push(`channel ${book.channelId}, purchase ${voucher.number}: ${words}`);
    },
  };
  const end = (outcome: BoughtVoucher["outcome"]): BoughtVoucher => {
    const { attempts, mayHaveRun } = buying;
    return { voucher, outcome, attempts, mayHaveRun };
  };
  for (let round = 0; round < maxRounds; round += 1) {
    const answer = await buyAt(buying, book.base + price, round === 0);
    switch (answer.kind) {
      case "served":
        book.base = smallestOf(book.possible);
        return end("served");
      case "refused": {
        const isAllowed = book.mayBeRefused && answer.reason.endsWith("_exceeds_balance");
        if (!isAllowed) buying.fault(`was refused: ${answer.reason}`);
        return end("refused");
      }
      case "corrected":
        if (isLost(buying, answer.charged)) return end("lost");
        await sleep(correctedPauseMs);
        continue;
      case "failed":
      case "again":
        buying.fault(`its buyer never got an answer: ${JSON.stringify(answer)}`);
        return end("gave up");
    }
  }
  buying.fault("was corrected again and again");
  return end("gave up");
}

/** Whether a correction says that the purchase was charged, and its answer is not to be had. */
function isLost({ book, voucher, mayBeLost, before, fault }: Buying, charged: bigint): boolean {
  const rise = charged - book.base;
  noteCorrection(book, charged, fault);
  if (!mayBeLost || rise <= 0n || !amountsOf(voucher).includes(rise)) return false;
  // A charge before this one may have stayed as it was made, in advance.
  if (before.has(charged)) return false;
  const { key, flow, twin } = voucher;
  if (key !== undefined && flow === "authorization" && twin !== "other") {
    fault("was charged with a key, and its answer is lost");
  }
  return true;
}

/** Sends the same request until its answer is one: a twin beside the first of all. */
async function buyAt(buying: Buying, ceiling: bigint, isFirst: boolean): Promise<VoucherAnswer> {
  const { market, book, voucher } = buying;
  if (ceiling > book.signed) book.signed = ceiling;
  const header = await market.bank.payWith(book, ceiling, market.offers[voucher.flow]);
  let answer = isFirst ? await askFirst(buying, header) : await ask(buying, header, voucher);
  while (answer.kind === "again" || answer.kind === "failed") {
    if (market.signal.aborted) return answer;
    await sleep(answer.kind === "again" ? answer.afterMs : 0);
    answer = await ask(buying, header, voucher);
  }
  return answer;
}

/** The first request, and its twin at the same time. */
async function askFirst(buying: Buying, header: string): Promise<VoucherAnswer> {
  const { book, voucher } = buying;
  const twin = twinOf(voucher);
  const [answer, other] = await Promise.all([
    ask(buying, header, voucher, { isFirst: true }),
    twin && ask(buying, header, twin),
  ]);
  if (twin === undefined || other === undefined) return answer;
  if (twin.path === voucher.path) return better(answer, other);
  if (answer.kind === "served" && other.kind === "served") {
    noteBoth(book, [amountsOf(voucher), amountsOf(twin)], buying.fault);
  }
  return answer;
}

async function ask(
  buying: Buying,
  header: string,
  asked: PlannedVoucher,
  { isFirst = false }: { isFirst?: boolean } = {},
): Promise<VoucherAnswer> {
  const { market, book } = buying;
  const { base } = book;
  const url = await market.sellerUrl();
  buying.attempts += 1;
  const answer = await askSeller({
    ...{ url, voucher: asked, header },
    hangUpAfterMs: isFirst ? asked.hangsUpAfterMs : undefined,
    isFailing: isFirst && asked.failsFirst,
  });
  const { path } = asked;
  const words = JSON.stringify(answer, (_, value) =>
    typeof value === "bigint" ? `${value}` : value,
  );
  market.log.info({ channel: book.channelId, path, url, base: `${base}`, answer: words }, "asked");
  if (answer.kind !== "again" || answer.mayBeCharged) buying.mayHaveRun += 1;
  if (answer.kind === "again" && answer.mayBeCharged) buying.mayBeLost = true;
  noteAnswer(book, asked, answer, buying.fault);
  return answer;
}

function twinOf(voucher: PlannedVoucher): PlannedVoucher | undefined {
  if (voucher.twin === "none") return undefined;
  if (voucher.twin === "same") return voucher;
  const number = voucher.number + otherOffset;
  return { ...voucher, number, path: pathOf(number, voucher.flow) };
}

/** Of two answers to one request, the one that counts for a client. */
function better(one: VoucherAnswer, other: VoucherAnswer): VoucherAnswer {
  if (one.kind === "served" || other.kind === "served") return one.kind === "served" ? one : other;
  return other.kind === "again" ? other : one;
}
