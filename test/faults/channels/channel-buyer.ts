import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";
import { type BoughtVoucher, buyVoucher, type Market } from "./buy-voucher.ts";
import type { ChannelBook } from "./channel-book.ts";
import { smallestOf } from "./sums.ts";
import type { ChannelPlan, PlannedVoucher } from "./voucher-plan.ts";

/** A withdrawal, as its payer has sent it. Amounts are in the token's smallest unit. */
export interface BegunWithdrawal {
  channelId: string;
  /** Charged then, at least: what a seller has to claim in time, or may leave in the channel. */
  charged: bigint;
}

/** A channel's buyer at its end. */
export interface ChannelBuyer {
  book: ChannelBook;
  bought: BoughtVoucher[];
  withdrawals: BegunWithdrawal[];
  /** Withdrawals that it has ended. */
  finished: number;
}

/** Purchases in a run that are refused in a row before a payer waits for its withdrawal. */
const maxRefused = 3;
const lookMs = 250;

/** Gates of a run: a purchase waits for its admission. */
export interface LoadGate {
  /** Resolves when one more purchase may begin; call the result at its end. */
  enter(): Promise<() => void>;
  /** Resolves when the faults are over. */
  calm: Promise<void>;
}

/**
 * Buys all that is planned on a channel. A hostile payer withdraws in between, and buys on as long
 * as it may. It ends its withdrawal when its delay is over, deposits again and buys the rest.
 */
export async function buyByChannel(
  market: Market & { devnet: Devnet; deposit: bigint },
  { plan, book, gate }: { plan: ChannelPlan; book: ChannelBook; gate: LoadGate },
): Promise<ChannelBuyer> {
  const { bank, signal, log } = market;
  const buyer: ChannelBuyer = { book, bought: [], withdrawals: [], finished: 0 };
  let refused = 0;
  let deposits = 0;
  for (const [place, voucher] of plan.vouchers.entries()) {
    if (place === plan.withdrawsBefore) await begin();
    const leave = await gate.enter();
    const bought = await buyVoucher(market, book, voucher).finally(leave);
    buyer.bought.push(bought);
    refused = bought.outcome === "refused" ? refused + 1 : 0;
    if (book.mayBeRefused && refused >= maxRefused) {
      await finishAndDeposit();
      refused = 0;
    }
  }
  await gate.calm;
  if (book.mayBeRefused) await finishAndDeposit();
  // Its answer arrives: nothing is left of which the seller does not know whether it did.
  buyer.bought.push(await buyVoucher(market, book, closing(plan)));
  return buyer;

  async function begin(): Promise<void> {
    const { balance, totalClaimed } = await bank.stateOf(book.config);
    const amount = ((balance - totalClaimed) * BigInt(plan.withdrawsPercent)) / 100n;
    if (amount === 0n) return;
    book.mayBeRefused = true;
    const charged = smallestOf(book.possible);
    buyer.withdrawals.push({ channelId: book.channelId, charged });
    log.info({ channel: book.channelId, amount: `${amount}`, charged: `${charged}` }, "withdraws");
    // A block may never have it: then nothing was withdrawn.
    await bank.withdraw(book, amount);
  }

  /** Ends the withdrawal once its delay is over, and deposits anew. */
  async function finishAndDeposit(): Promise<void> {
    const { balance } = await bank.stateOf(book.config);
    while (!signal.aborted) {
      if (!(await finishWithdrawal(market, book))) {
        await sleep(lookMs);
        continue;
      }
      const after = await bank.stateOf(book.config);
      if (after.balance < balance) buyer.finished += 1;
      await depositAgain();
      return;
    }
  }

  async function depositAgain(): Promise<void> {
    const { balance } = await bank.stateOf(book.config);
    log.info({ channel: book.channelId }, "deposits again");
    while (!signal.aborted) {
      deposits += 1;
      await bank.deposit(book, market.deposit, BigInt(deposits)).catch(() => undefined);
      for (let looks = 0; looks < 20; looks += 1) {
        await sleep(lookMs);
        const { balance: now } = await bank.stateOf(book.config);
        // It counts a few blocks later.
        if (now > balance) return sleep(8 * lookMs);
      }
    }
  }
}

/**
 * Ends a withdrawal whose delay is over.
 *
 * @returns whether none is pending: it has ended, or a reorganisation has taken it
 */
async function finishWithdrawal(
  { bank, devnet }: Pick<Market, "bank"> & { devnet: Devnet },
  book: ChannelBook,
): Promise<boolean> {
  const { pending, initiatedAt } = await bank.stateOf(book.config);
  if (initiatedAt === 0) return true;
  const { timestamp } = await devnet.client.getBlock();
  if (pending > 0n && Number(timestamp) >= initiatedAt + book.config.withdrawDelay) {
    await bank.finish(book).catch(() => undefined);
    await sleep(lookMs);
  }
  return (await bank.stateOf(book.config)).initiatedAt === 0;
}

function closing({ index }: ChannelPlan): PlannedVoucher {
  // No multiple of 5 or 19: it is charged in full.
  const number = 20_000_001 + index * 95;
  return {
    number,
    ...{ path: `/report/${number}`, method: "GET", flow: "authorization", key: undefined },
    ...{ twin: "none", hangsUpAfterMs: undefined, failsFirst: false },
  };
}
