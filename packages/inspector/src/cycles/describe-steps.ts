import type { Cycle, Leg } from "./cycle.ts";

/** A participant of the sequence diagram. */
export type Lane = "buyer" | "seller" | "chain";

/** A message of the sequence diagram. All pass the inspector but those of the chain. */
export interface Step {
  from: Lane;
  to: Lane;
  label: string;
  /** Beside the label, in small. */
  note?: string;
  kind: "ask" | "offer" | "pay" | "served" | "refused" | "broken" | "chain";
  /** From the cycle's first request. */
  atMs: number;
  /** Of an answer: from its request. */
  tookMs?: number;
  /** Number of its leg. */
  leg: number;
}

/** The messages of a cycle in their order. */
export function describeSteps(cycle: Cycle): Step[] {
  return cycle.legs.flatMap((leg) => stepsOf(leg, cycle));
}

function stepsOf(leg: Leg, { startedAt, chain }: Cycle): Step[] {
  const { number, request, payment, receipt, end } = leg;
  const at = (time: number) => Math.max(0, time - startedAt);
  const base = { leg: number, atMs: at(leg.startedAt) };
  const asked: Step = {
    ...base,
    from: "buyer",
    to: "seller",
    label: request.method,
    kind: payment === undefined ? "ask" : "pay",
  };
  if (payment !== undefined) {
    asked.label = `${request.method} with ${payment.isRepeated ? "the same" : "a"} payment`;
    asked.note = [payment.price, payment.wire].filter((text) => text !== undefined).join(" by ");
  }
  if (leg.key !== undefined) asked.note = [asked.note, leg.key].filter(Boolean).join(", ");
  const steps = [asked];
  const until = leg.answeredAt ?? leg.endedAt ?? leg.startedAt;
  if (receipt?.transaction !== undefined && payment?.isRepeated !== true) {
    const gas = chain?.transaction === receipt.transaction ? chain.gasUsed : undefined;
    const note = gas === undefined ? {} : { note: `${gas} gas` };
    steps.push({
      ...base,
      from: "seller",
      to: "chain",
      label: "settles",
      kind: "chain",
      atMs: at(until),
      ...note,
    });
  }
  if (end === undefined && leg.answer === undefined) return steps;
  steps.push(
    answerStep(leg, { ...base, atMs: at(until), tookMs: Math.max(0, until - leg.startedAt) }),
  );
  return steps;
}

function answerStep(leg: Leg, base: Pick<Step, "leg" | "atMs" | "tookMs">): Step {
  const { answer, ways, payment, receipt, refusal, end } = leg;
  const back = { ...base, from: "seller", to: "buyer" } as const;
  if (answer === undefined || (end !== undefined && end !== "answered")) {
    return { ...back, label: end ?? "broken", kind: "broken" };
  }
  const label = `${answer.status} ${answer.statusText}`.trim();
  if (payment === undefined) {
    const offers = ways.length === 1 ? "1 offer" : `${ways.length} offers`;
    return {
      ...back,
      label,
      note: ways.length === 0 ? "no offer that can be read" : offers,
      kind: "offer",
    };
  }
  if (answer.status >= 400) {
    const reason = payment.failed?.check ?? refusal?.reason;
    return { ...back, label, ...(reason === undefined ? {} : { note: reason }), kind: "refused" };
  }
  const note = receipt === undefined ? "no receipt" : "receipt";
  return { ...back, label, note, kind: receipt?.success === true ? "served" : "refused" };
}
