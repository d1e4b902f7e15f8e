import type { Cycle, Wire } from "./cycle.ts";
import { type CycleState, stateOf } from "./state-of.ts";

/** A cycle in one line. Times are unix milliseconds. */
export interface CycleSummary {
  id: number;
  state: CycleState;
  method: string;
  target: string;
  /** Exchanges, of which those with a payment. */
  exchanges: number;
  payments: number;
  startedAt: number;
  /** From the first request to the end of the last answer. */
  tookMs?: number;
  /** Of the last answer. */
  status?: number;
  wire?: Wire;
  price?: string;
  network?: string;
  payer?: string;
  transaction?: string;
  gasUsed?: string;
  failed?: { check: string; says: string };
}

/** The line of a cycle in lists, on a terminal and in JSON. */
export function summarise(cycle: Cycle): CycleSummary {
  const { id, method, target, startedAt, legs, droppedLegs, chain } = cycle;
  const state = stateOf(cycle);
  const paid = legs.filter(({ payment }) => payment !== undefined);
  const served = paid.find(({ receipt }) => receipt?.success === true);
  const decisive = (state === "paid" ? served : paid.at(-1)) ?? legs.at(-1);
  const { payment } = decisive ?? {};
  const way = payment?.way ?? legs.findLast(({ ways }) => ways.length > 0)?.ways[0];
  const end = legs.at(-1)?.endedAt;
  return withoutAbsent({
    id,
    state,
    method,
    target,
    exchanges: legs.length + droppedLegs,
    payments: paid.length,
    startedAt,
    tookMs: end === undefined ? undefined : Math.max(0, end - startedAt),
    status: decisive?.answer?.status,
    wire: payment?.wire,
    price: payment?.price ?? way?.price,
    network: payment?.network ?? way?.network,
    payer: payment?.authorization?.from,
    transaction: served?.receipt?.transaction,
    gasUsed: chain?.gasUsed,
    failed: state === "paid" ? undefined : payment?.failed,
  });
}

/** An object's members that are there. */
type Present<Members> = { [Name in keyof Members]: Exclude<Members[Name], undefined> };

function withoutAbsent<Members extends object>(members: Members): Present<Members> {
  // The entries are those of the members themselves.
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined),
  ) as Present<Members>;
}
