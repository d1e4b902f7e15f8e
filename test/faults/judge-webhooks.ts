import type { RefundRecord } from "@coinslot/facilitator";
import type { TakenEvent } from "./webhook-log.ts";
import type { ListedPayment } from "./worker-messages.ts";

/** Webhooks of a finished run. */
export interface WebhookEvidence {
  /** In the order of their arrival, repetitions among them. */
  taken: readonly TakenEvent[];
  ledger: readonly ListedPayment[];
  refunds: readonly RefundRecord[];
  /** Events that had not been delivered at the end. */
  left: number;
  /** Requests that no seller has signed. */
  foreign: number;
}

/** Events that may follow one of the same payment, or of the same refund. */
const follow: Readonly<Record<string, readonly string[]>> = {
  "": ["payment.settled", "payment.failed", "refund.created"],
  "payment.settled": ["payment.reverted", "payment.final"],
  "payment.reverted": ["payment.settled", "payment.failed"],
  "payment.failed": ["payment.settled"],
  "payment.final": [],
  "refund.created": ["refund.settled", "refund.final"],
  "refund.settled": ["refund.reverted", "refund.final"],
  "refund.reverted": ["refund.settled", "refund.final"],
  "refund.final": [],
};

/** Violations: an event that was lost, out of order, or told of nothing. */
export function findWebhookViolations(evidence: WebhookEvidence): string[] {
  const { taken, ledger, refunds, left, foreign } = evidence;
  const first = taken.filter(
    ({ id }, index) => taken.findIndex((each) => each.id === id) === index,
  );
  const stories = storiesOf(first);
  return [
    ...(left > 0 ? [`${left} webhooks were not delivered`] : []),
    ...(foreign > 0 ? [`${foreign} webhooks have a wrong signature or body`] : []),
    ...judgeOrder(first),
    ...[...stories].flatMap(([subject, types]) => judgeStory(subject, types)),
    ...ledger.flatMap(({ id, state }) => {
      const last = stories.get(id)?.at(-1);
      if (state === "confirmed" && last !== "payment.final") {
        return [`payment ${id}: confirmed, and its last event is ${last}`];
      }
      return state === "released" && last !== undefined
        ? [`payment ${id}: never charged, and told as ${last}`]
        : [];
    }),
    ...refunds.flatMap(({ id, state }) => {
      const last = stories.get(id)?.at(-1);
      if (state === "final" && last !== "refund.final") {
        return [`refund ${id}: final, and its last event is ${last}`];
      }
      return last === undefined ? [`refund ${id}: no event has told of it`] : [];
    }),
  ];
}

/** Events of a payment arrive for the first time in the order of their numbers. */
function judgeOrder(first: readonly TakenEvent[]): string[] {
  const last = new Map<string, number>();
  const problems: string[] = [];
  for (const { id, payment } of first) {
    const number = Number(id.split("_")[1]);
    const before = last.get(payment) ?? -1;
    if (number <= before) problems.push(`payment ${payment}: event ${number} came after ${before}`);
    last.set(payment, Math.max(before, number));
  }
  return problems;
}

/** Types of events by payment, and by refund. */
function storiesOf(first: readonly TakenEvent[]): Map<string, string[]> {
  const stories = new Map<string, string[]>();
  for (const { type, payment, refund } of first) {
    const subject = refund ?? payment;
    stories.set(subject, [...(stories.get(subject) ?? []), type]);
  }
  return stories;
}

function judgeStory(subject: string, types: readonly string[]): string[] {
  return types.flatMap((type, index) => {
    const before = types[index - 1] ?? "";
    return follow[before]?.includes(type) ? [] : [`${subject}: ${type} came after "${before}"`];
  });
}
