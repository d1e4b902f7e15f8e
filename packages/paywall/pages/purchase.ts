import type { PageData, PayableWay } from "../src/page-data.ts";
import { isSelected, readFate, selectChain } from "./chain.ts";
import { element } from "./element.ts";
import type { createKeep, KeptPayment } from "./kept-payment.ts";
import { canOpen, openAnswer } from "./open-answer.ts";
import type { Provider, Wallet } from "./provider.ts";
import { type Attempt, sendPayment } from "./send.ts";
import { showAnswer } from "./show-answer.ts";
import { type Actions, fill, part, say } from "./view.ts";

/** The purchase of this page. */
export interface Purchase {
  data: PageData;
  keep: ReturnType<typeof createKeep>;
  /** Unix milliseconds of the seller's clock. */
  now: () => number;
  /** Those that have announced themselves. */
  wallets: Wallet[];
  /** The wallet that was chosen last. */
  wallet?: Wallet;
  /** Number of the latest run: an earlier one, whose answers come late, changes nothing. */
  run: number;
  /** Shows the wallets again. */
  offer: () => void;
}

const maxAttempts = 6;
const maxWaitMs = 10_000;
const maxOpenings = 2;
const missedMs = 10_000;

/** Sends the payment until the seller has decided: the same one each time. */
export async function deliver(purchase: Purchase, kept: KeptPayment): Promise<void> {
  const { data, keep } = purchase;
  const { texts } = data;
  purchase.run += 1;
  const { run } = purchase;
  const payment = { ...kept, isSent: true };
  keep.write(payment);
  part("pay").hidden = true;
  say(data, { mood: "busy", lines: [texts.sending] });
  for (let count = 1; ; count += 1) {
    const attempt = await sendPayment(data, payment);
    if (purchase.run !== run) return;
    // A refusal says nothing of an attempt before it.
    const isFirst = count === 1 && kept.isSent !== true;
    if (attempt.kind !== "undecided") return conclude(purchase, payment, { attempt, isFirst });
    if (count === maxAttempts) {
      const state = attempt.isAnswered ? texts.pending : texts.noAnswer;
      return explain(purchase, payment, [state, texts.mayMove]);
    }
    say(data, { mood: "busy", lines: [texts.waiting] });
    await new Promise((resolve) => setTimeout(resolve, Math.min(attempt.waitMs, maxWaitMs)));
  }
}

async function conclude(
  purchase: Purchase,
  payment: KeptPayment,
  { attempt, isFirst }: { attempt: Exclude<Attempt, { kind: "undecided" }>; isFirst: boolean },
): Promise<void> {
  const { data, keep } = purchase;
  const { texts } = data;
  const money = (isUncharged: boolean) =>
    isFirst && isUncharged ? texts.nothingMoved : texts.mayMove;
  switch (attempt.kind) {
    case "answered": {
      const { response, transaction, opens } = attempt;
      const paid = transaction === undefined ? payment : { ...payment, transaction };
      keep.write(paid);
      if (opens && open(purchase, paid)) return;
      keep.write({ ...paid, openedAt: 0 });
      showEnd(purchase, paid, await showAnswer(response, texts.save));
      return;
    }
    case "redirected":
      if (open(purchase, payment)) return;
      return explain(purchase, payment, [fill(texts.failed, { reason: "3xx" }), texts.mayMove]);
    case "charged": {
      const paid = { ...payment, transaction: attempt.transaction };
      keep.write(paid);
      const lines = [texts.charged, ...receiptOf(purchase, paid)];
      return say(data, { mood: "bad", lines, actions: again(purchase, paid) });
    }
    case "refunded":
      keep.drop();
      say(data, { mood: "bad", lines: [texts.refunded], actions: { anew: purchase.offer } });
      return;
    case "refused":
      return explain(purchase, payment, [reasonOf(data, attempt.reason), money(true)]);
    case "failed": {
      const text = fill(texts.failed, { reason: String(attempt.status) });
      return explain(purchase, payment, [text, money(attempt.isUncharged)]);
    }
  }
}

function reasonOf({ texts }: PageData, reason: string): string {
  if (reason === "invalid_exact_evm_signature") return texts.badSignature;
  if (reason === "No matching payment requirements") return texts.termsChanged;
  return fill(texts.refused, { reason });
}

/** Opens the answer by a navigation, unless that has not helped before. */
function open({ data, keep }: Purchase, payment: KeptPayment): boolean {
  const openings = (payment.openings ?? 0) + 1;
  if (openings > maxOpenings || !canOpen(data)) return false;
  keep.write({ ...payment, openings, openedAt: Date.now() });
  say(data, { mood: "busy", lines: [data.texts.opening] });
  openAnswer(data);
  return true;
}

/**
 * Returns whether this page is here in place of the answer that it has just opened. The cookie was
 * lost, or another process of the seller has not heard yet that the answer was delivered.
 */
export function hasMissed({ openedAt = 0, openings = 0 }: KeptPayment): boolean {
  return openings > 0 && Date.now() - openedAt < missedMs;
}

/** Says what is open, and until when. Nothing else is signed before that. */
function explain(purchase: Purchase, payment: KeptPayment, lines: readonly string[]): void {
  const { data } = purchase;
  const { validBefore } = payment.authorization;
  const time = new Date(Number(validBefore) * 1000).toLocaleTimeString(data.language);
  const actions: Actions = {
    again: () => void deliver(purchase, payment),
    check: () => void check(purchase, payment),
  };
  say(data, { mood: "bad", lines: [...lines, fill(data.texts.open, { time })], actions });
}

/** Asks the chain, by the wallet, what became of a signed payment. */
export async function check(purchase: Purchase, payment: KeptPayment): Promise<void> {
  const { data, keep } = purchase;
  const { texts } = data;
  const wallet = purchase.wallet ?? purchase.wallets[0];
  if (wallet === undefined) return explain(purchase, payment, [texts.noWallet, texts.mayMove]);
  purchase.run += 1;
  const { run } = purchase;
  say(data, { mood: "busy", lines: [texts.readingBalance] });
  const fate = await askFate(wallet.provider, payment);
  if (purchase.run !== run) return;
  if (fate === "expired") {
    keep.drop();
    purchase.offer();
    return say(data, { mood: "plain", lines: [texts.expired] });
  }
  if (fate !== "used") return explain(purchase, payment, [texts.mayMove]);
  const paid = { ...payment, transaction: payment.transaction ?? "" };
  keep.write(paid);
  say(data, { mood: "bad", lines: [texts.moved], actions: again(purchase, paid) });
}

async function askFate(provider: Provider, { way, authorization }: KeptPayment) {
  try {
    if (!(await selectChain(provider, way))) return undefined;
    const fate = await readFate(provider, way, authorization);
    // Its user may have switched it since: another chain knows the nonce of no payment.
    return (await isSelected(provider, way)) ? fate : undefined;
  } catch {
    return undefined;
  }
}

/** The end of a purchase: its receipt, and its answer. */
function showEnd(purchase: Purchase, payment: KeptPayment, answer: HTMLElement): void {
  const { data } = purchase;
  const { transaction, way } = payment;
  const lines: (string | Node)[] = [];
  if (transaction !== undefined) {
    lines.push(fill(data.texts.paid, { price: way.price }), ...receiptOf(purchase, payment));
  }
  part("otherwise").hidden = true;
  const actions = transaction === undefined ? {} : { buyAgain: buyAgain(purchase) };
  say(data, { mood: "good", lines: [...lines, answer], actions });
}

/** A purchase that was paid before this page was opened. */
export function showPaid(purchase: Purchase, payment: KeptPayment): void {
  const lines = [purchase.data.texts.paidBefore, ...receiptOf(purchase, payment)];
  say(purchase.data, { mood: "good", lines, actions: again(purchase, payment) });
}

function again(purchase: Purchase, payment: KeptPayment): Actions {
  const showAgain = () => void deliver(purchase, { ...payment, openings: 0 });
  return { showAgain, buyAgain: buyAgain(purchase) };
}

/** Begins another purchase: the money of this one has moved. */
function buyAgain({ keep, offer }: Purchase): () => void {
  return () => {
    keep.drop();
    offer();
  };
}

function receiptOf({ data }: Purchase, { transaction, way }: KeptPayment): Node[] {
  if (!transaction) return [];
  const { explorer } = way;
  const shown = `${transaction.slice(0, 10)}…${transaction.slice(-8)}`;
  const link = explorer === undefined ? shown : linkTo(way, transaction, shown);
  return [element("p", { class: "receipt" }, `${data.texts.receipt}: `, link)];
}

function linkTo({ explorer = "" }: PayableWay, transaction: string, shown: string): HTMLElement {
  const href = explorer.replace("{hash}", transaction);
  return element(
    "a",
    { href, target: "_blank", rel: "noopener noreferrer", title: transaction },
    shown,
  );
}
