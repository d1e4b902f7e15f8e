import type { Cycle, Leg } from "./cycle.ts";

/** The states of a cycle; the README has their transitions. */
export type CycleState =
  | "offered"
  | "paying"
  | "paid"
  | "no receipt"
  | "refused"
  | "unclear"
  | "abandoned";

/** The state of a cycle, from its legs alone: the latest paid one decides. */
export function stateOf({ legs }: Pick<Cycle, "legs">): CycleState {
  const paid = legs.filter(({ payment }) => payment !== undefined);
  const last = paid.at(-1);
  if (last === undefined) return "offered";
  // A repeated request that fails takes back nothing of a payment that was served.
  const served = paid.find((leg) => stateAfter(leg) === "paid");
  return served === undefined ? stateAfter(last) : "paid";
}

function stateAfter({ end, answer, receipt }: Leg): CycleState {
  if (end === undefined) return "paying";
  if (end === "unreachable") return "refused";
  if (end === "buyer left") return "abandoned";
  if (end === "seller broke off" || answer === undefined) return "unclear";
  if (answer.status < 400) return receipt?.success === true ? "paid" : "no receipt";
  return answer.status < 500 ? "refused" : "unclear";
}
