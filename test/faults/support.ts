import { setTimeout as sleep } from "node:timers/promises";
import {
  createRefundOperation,
  type Logger,
  listPaymentsOperation,
  listRefundsOperation,
  OperationRefusedError,
  type Operator,
  type RefundRecord,
} from "@coinslot/facilitator";
import type { Bought } from "./buyer.ts";
import { calmLimitMs } from "./ledger-at-rest.ts";
import { type Purchase, price } from "./purchase.ts";
import type { Random } from "./seeded-random.ts";

interface Step {
  /** Absent: what is left. */
  amount?: bigint;
  /** Asked for twice at once. */
  isTwin?: boolean;
}

/** Acts of the seller's support for a buyer who was served. */
const plans = {
  /** All of it. */
  whole: [{}],
  /** Two halves, and one unit more than was paid. */
  halves: [{ amount: price / 2n }, { amount: price / 2n }, { amount: 1n }],
  /** Twice at once, by one key. */
  twin: [{ isTwin: true }],
  /** More than was paid. */
  excess: [{ amount: price + 1n }],
} as const satisfies Record<string, readonly Step[]>;

type PlanName = keyof typeof plans;

/** A refund that was asked for, with the last answer. */
export interface AskedRefund {
  purchase: Purchase;
  plan: PlanName;
  key: string;
  /** Absent: what is left. */
  amount: bigint | undefined;
  /** The refunds that its answers named: one, however often it was asked for. */
  refunds: ReadonlySet<string>;
  /** Code of its refusal. */
  refusal: string | undefined;
}

/** Gives buyers their money back while the sellers die. */
export interface Support {
  /** A purchase has ended: it may be given back. */
  consider(bought: Bought): void;
  /** Every refund that was asked for, once each has an answer. */
  done(): Promise<AskedRefund[]>;
}

const shareGivenBack = 0.3;
const pauseMs = 100;
/** The payment is being served, or its block was taken back: it is asked for again. */
const passing: readonly string[] = ["in_use", "not_settled", "file_busy"];

/** Starts the support of a seller, which acts from outside of the sellers' processes. */
export function startSupport(options: {
  operator: Operator;
  random: Random;
  /** Ends the hope for an answer. */
  signal: AbortSignal;
  log: Logger;
}): Support {
  const { operator, random, signal, log } = options;
  const cases: Promise<AskedRefund[]>[] = [];

  async function giveBack(purchase: Purchase, plan: PlanName): Promise<AskedRefund[]> {
    const { nonce } = purchase.authorization;
    const found = await decided(() => operator.run(listPaymentsOperation, { search: nonce }));
    const payment = isRefused(found) ? found.code : (found.payments[0]?.id ?? "not listed");
    const asked: AskedRefund[] = [];
    for (const [index, step] of plans[plan].entries()) {
      const { amount, isTwin }: Step = step;
      const key = `support ${purchase.number} ${index}`;
      const argument = { payment, amount: amount?.toString(), idempotencyKey: key };
      const ask = () => decided(() => operator.run(createRefundOperation, argument));
      const answers = [...(await Promise.all(isTwin ? [ask(), ask()] : [ask()])), await ask()];
      const refunds = new Set(answers.flatMap((answer) => (isRefused(answer) ? [] : [answer.id])));
      const refusal = answers.find(isRefused)?.code;
      asked.push({ purchase, plan, key, amount, refunds, refusal });
      log.info({ purchase: purchase.number, plan, refunds: [...refunds], refusal }, "support");
    }
    return asked;
  }

  /** Asks until an answer decides. */
  async function decided<Answer>(ask: () => Promise<Answer>): Promise<Answer | Refusal> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const code = error instanceof OperationRefusedError ? error.code : undefined;
        if (code !== undefined && !passing.includes(code)) return { isRefused: true, code };
        if (signal.aborted) return { isRefused: true, code: `no answer: ${String(error)}` };
      }
      await sleep(pauseMs);
    }
  }

  return {
    consider({ purchase, outcome }) {
      const own = random.fork(`refund ${purchase.number}`);
      const isHonest = purchase.interference === "none" && outcome.kind === "served";
      if (!isHonest || !own.chance(shareGivenBack)) return;
      cases.push(giveBack(purchase, own.pick(["whole", "halves", "twin", "excess"])));
    },
    done: async () => (await Promise.all(cases)).flat(),
  };
}

/** All refunds of the ledger, once none is under way any more, or at the timeout. */
export async function awaitRefunds(operator: Operator): Promise<RefundRecord[]> {
  const deadline = performance.now() + calmLimitMs;
  for (;;) {
    const refunds = await readRefunds(operator);
    const isAtRest = refunds.every(({ state }) => state === "final" || state === "void");
    if (isAtRest || performance.now() > deadline) return refunds;
    await sleep(pauseMs);
  }
}

async function readRefunds(operator: Operator): Promise<RefundRecord[]> {
  const refunds: RefundRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await operator.run(listRefundsOperation, { limit: 1_000, cursor });
    refunds.push(...page.refunds);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return refunds;
}

interface Refusal {
  isRefused: true;
  code: string;
}

function isRefused(answer: object): answer is Refusal {
  return "isRefused" in answer;
}
